# exp2f(fma(x, log2(e), -M)): one rounding of the whole argument, and log2(e) as a float. Together kappa.
@rnd = float<ieee_32, ne>;
Log2E = @log2e@;
x = rnd(any_x);
M = rnd(any_M);
whole = x * Log2E - M;
t = rnd(whole);
{ log2e in [1.442695040888963407, 1.442695040888963408] /\ |whole| in [1b-100, 1b60] ->
  t -/ whole in [-@unit@, @unit@] /\ Log2E -/ log2e in [-@rest@, @rest@] }
