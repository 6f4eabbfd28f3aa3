# A row that is scaled first: x * fl(1 / T).
@rnd = float<ieee_32, ne>;
x = rnd(any_x);
T = rnd(any_T);
inverse rnd= 1 / T;
t rnd= x * inverse;
{ |x| in [1b-60, 1b60] /\ T in [1b-40, 1b40] ->
  inverse -/ (1 / T) in [-@unit@, @unit@] /\ t -/ (x * inverse) in [-@unit@, @unit@] /\
  t -/ (x * (1 / T)) in [-@both@, @both@] }
