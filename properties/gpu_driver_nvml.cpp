// A driver that answers, for machines without one: of the one GPU at 0000:17:00.0.

#include <cstring>

extern "C" {

int nvmlInit_v2() { return 0; }
const char* nvmlErrorString(int) { return "Not Found"; }
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, void** device) {
  static int gpu;
  *device = &gpu;
  return std::strcmp(bus_id, "0000:17:00.0") == 0 ? 0 : 6;
}
// Idle, application clocks, software power cap, synchronised boost and hardware power brake, under its older name.
int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* bits) {
  *bits = 0x97;
  return 0;
}
int nvmlDeviceGetEnforcedPowerLimit(void*, unsigned* milliwatts) {
  *milliwatts = 123456;
  return 0;
}
int nvmlDeviceGetTemperature(void*, int, unsigned*) { return 3; }  // not supported

}  // extern "C"
