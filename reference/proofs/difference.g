# One subtraction of floats: x - max. No underflow, since floats' differences are multiples of 2^-149.
@rnd = float<ieee_32, ne>;
x = rnd(any_x);
m = rnd(any_m);
d rnd= x - m;
{ x in [-1b126, 1b126] /\ m in [-1b126, 1b126] -> d -/ (x - m) in [-@a@, @a@] }
