# One addition of positive sums; a sum that is rescaled and added to, and the same contracted to an fma; the same in double,
# and double rounded to float.
@rnd = float<ieee_32, ne>;
@wide = float<ieee_64, ne>;
a = rnd(any_a);
b = rnd(any_b);
f = rnd(any_f);
sum rnd= a + b;
twice rnd= a * f + b;
once = rnd(a * f + b);
A = wide(any_A);
B = wide(any_B);
Sum wide= A + B;
Product wide= A * f;
narrow = rnd(A);
{ a in [1b-40, 1b40] /\ b in [1b-40, 1b40] /\ f in [1b-40, 1] /\ A in [1b-40, 1b40] /\ B in [1b-40, 1b40] ->
  sum -/ (a + b) in [-@unit@, @unit@] /\
  twice -/ (a * f + b) in [-@two@, @two@] /\
  once -/ (a * f + b) in [-@unit@, @unit@] /\
  Sum -/ (A + B) in [-@double@, @double@] /\
  Product -/ (A * f) in [-@double@, @double@] /\
  narrow -/ A in [-@unit@, @unit@] }
