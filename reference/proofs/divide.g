# e / sum; e * (1 / sum); and e times a reciprocal that is 1 ulp off, as NVIDIA documents rcp.approx. No underflow: underflow.g.
@rnd = float<ieee_32, ne>;
e = rnd(any_e);
s = rnd(any_s);
quotient rnd= e / s;
inverse = rnd(1 / s);
product rnd= e * inverse;
fast rnd= e * near;
{ e in [1b-80, 1] /\ s in [1, 1b40] /\ near -/ inverse in [-1b-23, 1b-23] ->
  quotient -/ (e / s) in [-@ieee@, @ieee@] /\
  product -/ (e * (1 / s)) in [-@reciprocal@, @reciprocal@] /\
  fast -/ (e * (1 / s)) in [-@fast@, @fast@] }
