# eps0 of certified.csv: `certify` compares with exp in double, 1 ulp or 2^-52 off, in units of u = 2^-24 (2^-28), and 6 digits
# are printed. It is at least 1/4.
{ eps0 - seen in [-1b-28, 1b-28] /\ seen in [0.25, 1000] /\ printed -/ seen in [-5e-6, 5e-6] ->
  eps0 - printed - @printed@ * printed <= 0 }
