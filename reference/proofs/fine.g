# The exp of 32-bit outputs gives back how much too large its power is, in halvings, at a temperature by a scale and its rest:
# what is left. Distance and temperature are in the binade from 1 on, as good as any other.
@rnd = float<ieee_32, ne>;
Log2E = @log2e@;
Rest = @log2e_rest@;
Ln2 = @ln2@;
d = rnd(any_d);
T = rnd(any_T);

scale = rnd(Log2E / T);
short = -(scale - Log2E / T) * T;
lacks = rnd(short) + Rest;
inverse = rnd(scale * Ln2);
product = rnd(lacks) * inverse;
rest = rnd(product);
missed = scale + rest - log2e / T;

power = rnd(d * scale);
over = -(power - d * scale);
sum = d * rest + rnd(over);
left = power + rnd(sum) - d * (log2e / T);

{ log2e in [1.442695040888963407, 1.442695040888963408] /\ d in [1, 2] /\ T in [1, 2] -> left in [-@left@, @left@] }
inverse - 1 / T -> (inverse - scale * Ln2) + Ln2 * (scale - Log2E / T) + (Ln2 * Log2E - 1) / T { T <> 0 };
missed -> (rest - product) + rnd(lacks) * (inverse - 1 / T) +
  ((rnd(lacks) - lacks) + (rnd(short) - short) + (Log2E + Rest - log2e)) / T { T <> 0 };
left -> (rnd(sum) - sum) + (rnd(over) - over) + d * missed { T <> 0 };
