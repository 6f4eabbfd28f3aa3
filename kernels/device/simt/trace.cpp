// Where the loads and stores of kernel files arrive: g++ calls these for each access because kernel files are compiled
// with -fsanitize=thread, and this file stands in for the sanitizer's own library. Nothing listens yet.

#define ACCESS(name) \
  extern "C" void name(void*) {}
#define SIZES(name) ACCESS(name##1) ACCESS(name##2) ACCESS(name##4) ACCESS(name##8) ACCESS(name##16)

SIZES(__tsan_read)
SIZES(__tsan_write)
SIZES(__tsan_unaligned_read)
SIZES(__tsan_unaligned_write)
SIZES(__tsan_volatile_read)
SIZES(__tsan_volatile_write)
SIZES(__tsan_unaligned_volatile_read)
SIZES(__tsan_unaligned_volatile_write)
extern "C" void __tsan_read_range(void*, unsigned long) {}
extern "C" void __tsan_write_range(void*, unsigned long) {}
extern "C" void __tsan_vptr_update(void**, void*) {}
extern "C" void __tsan_vptr_read(void**) {}
extern "C" void __tsan_func_entry(void*) {}
extern "C" void __tsan_func_exit(void*) {}
extern "C" void __tsan_init() {}
