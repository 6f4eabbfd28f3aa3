// What no kernel file may be: it defines a function that the linker could swap for another object's, and traces
// nothing. Compiled only for symbols_test.sh, to show that the script sees it.
namespace softmax {
__attribute__((no_sanitize_thread)) inline float leaked(float* x) { return *x; }
}  // namespace softmax

float (*keep_leaked)(float*) = softmax::leaked;
