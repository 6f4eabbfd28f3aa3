# The argument of ex2: a difference times log2(e) as a float, and times that over a temperature. An error of the argument
# relative to d * log2(e) is one of exp's result, for each unit of d.
@rnd = float<ieee_32, ne>;
Log2E = @log2e@;
d = rnd(any_d);
T = rnd(any_T);
t rnd= d * Log2E;
scale rnd= Log2E / T;
s rnd= d * scale;
{ log2e in [1.442695040888963407, 1.442695040888963408] /\ |d| in [1b-60, 1b60] /\ T in [1b-40, 1b40] ->
  t -/ (d * log2e) in [-@kappa@, @kappa@] /\
  s -/ (d * (log2e / T)) in [-@kappa_T@, @kappa_T@] }
