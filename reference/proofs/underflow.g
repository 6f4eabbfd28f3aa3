# What is lost below 2^-126: an exp that is 2.5 spacings off there over a sum of 1 or more, and the quotient's half a spacing;
# or both flushed to 0.
@rnd = float<ieee_32, ne>;
E = rnd(any_E);
s = rnd(any_s);
y rnd= E / s;
{ e in [0, 1b-126] /\ E - e in [-0x5p-150, 0x5p-150] /\ E in [0, 1b-126] /\ s in [1, 1b40] /\
  F - f in [-1b-126, 1b-126] /\ z - F / s in [-1b-126, 1b-126] ->
  y - e / s in [-@gradual@, @gradual@] /\
  z - f / s in [-@flushed@, @flushed@] }
