# A float in [0, 1] to fp16 and bf16: a relative error, or an absolute one where these are evenly spaced.
@rnd = float<ieee_32, ne>;
@half = float<11, -24, ne>;
@brain = float<8, -133, ne>;
y = rnd(any_y);
z = rnd(any_z);
Y = rnd(any_Y);
Z = rnd(any_Z);
{ y in [1b-13, 1] /\ z in [0, 1b-13] /\ Y in [1b-125, 1] /\ Z in [0, 1b-125] ->
  half(y) -/ y in [-@fp16@, @fp16@] /\ half(z) - z in [-@fp16_absolute@, @fp16_absolute@] /\
  brain(Y) -/ Y in [-@bf16@, @bf16@] /\ brain(Z) - Z in [-@bf16_absolute@, @bf16_absolute@] }
