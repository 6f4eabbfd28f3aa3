# An error of 2 ulp from correctly rounded, as NVIDIA documents it of expf, ex2.approx and __fdividef: an absolute one in the
# binade from 1 on, so at most that relative, and in any other binade the same.
@rnd = float<ieee_32, ne>;
nearest = rnd(exact);
{ exact in [1, 2] /\ given - nearest in [-2b-23, 2b-23] -> given - exact in [-@documented@, @documented@] }
