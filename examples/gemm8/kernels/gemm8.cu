// gemm8 (examples/gemm8/README.md, "Operands and limits" and "Arithmetic") and two ways to move bytes, as CUDA kernels. What a GPU runs is gemm8.ptx,
// made from this file by `examples/gemm8/kernels/ptx` with NVRTC 12.9 for compute capability 5.3; README.md says what to launch them with.
//
// Nothing here needs a CUDA header. Every kernel is right with any grid of any shape: a thread takes every `threads()`th element, starting at
// `thread()`.

#ifdef __CUDACC_RTC__ // no headers there
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
typedef unsigned long long uintptr_t;
#else
#include <stdint.h>
#endif

// Of `flags`. The shift is modulo 32, as the register's five bits are.
enum : uint32_t { RELU = 1u << 0, INT8 = 1u << 1, SHIFT_AT = 8, SHIFT_MASK = 31 };

// This thread's number in the whole grid; neighbours in a warp have neighbouring numbers.
static inline __device__ uint64_t thread() {
    uint64_t block = ((uint64_t)blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    uint32_t inside = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    return block * (blockDim.x * blockDim.y * blockDim.z) + inside;
}

// How many threads the grid has.
static inline __device__ uint64_t threads() {
    return (uint64_t)gridDim.x * gridDim.y * gridDim.z * (blockDim.x * blockDim.y * blockDim.z);
}

// What becomes of one sum: `contigo_gemm8::requantize`.
static inline __device__ int32_t requantize(int32_t sum, uint32_t flags) {
    if ((flags & RELU) && sum < 0) sum = 0;
    if (!(flags & INT8)) return sum;
    uint32_t shift = flags >> SHIFT_AT & SHIFT_MASK;
    // The sum and the rounding constant take 33 bits. CUDA and every compiler here shift a negative number arithmetically.
    int64_t shifted = (sum + ((int64_t)1 << shift >> 1)) >> shift;
    return shifted < -128 ? -128 : shifted > 127 ? 127 : (int32_t)shifted;
}

// C = A·B + bias, with what `flags` say. A: m rows of k. B: k rows of n. bias: n. C: m rows of n int8 or int32; it overlaps no other.
extern "C" __global__ void gemm8(const int8_t *__restrict__ a, const int8_t *__restrict__ b, const int32_t *__restrict__ bias,
                                 void *__restrict__ c, uint32_t m, uint32_t n, uint32_t k, uint32_t flags) {
    uint64_t elements = (uint64_t)m * n;
    for (uint64_t element = thread(); element < elements; element += threads()) {
        uint64_t row = element / n;
        uint32_t column = (uint32_t)(element - row * n);
        const int8_t *left = a + row * k;
        const int8_t *right = b + column;
        // Unsigned, because the sum wraps, and a signed one that does is undefined.
        uint32_t sum = (uint32_t)bias[column];
        for (uint32_t inner = 0; inner < k; inner++, right += n) sum += (uint32_t)(left[inner] * *right);
        int32_t value = requantize((int32_t)sum, flags);
        if (flags & INT8) ((int8_t *)c)[element] = (int8_t)value;
        else ((int32_t *)c)[element] = value;
    }
}

// Copies `len` bytes. The two do not overlap.
extern "C" __global__ void copy_bytes(void *__restrict__ dst, const void *__restrict__ src, uint64_t len) {
    uint64_t wide = ((uintptr_t)dst | (uintptr_t)src) % sizeof(uint4) == 0 ? len / sizeof(uint4) : 0;
    for (uint64_t at = thread(); at < wide; at += threads()) ((uint4 *)dst)[at] = ((const uint4 *)src)[at];
    for (uint64_t at = wide * sizeof(uint4) + thread(); at < len; at += threads()) ((uint8_t *)dst)[at] = ((const uint8_t *)src)[at];
}

// Writes the low byte of `value` to `len` bytes.
extern "C" __global__ void fill_bytes(void *dst, uint32_t value, uint64_t len) {
    uint32_t word = (value & 0xFF) * 0x01010101u;
    uint4 line = {word, word, word, word};
    uint64_t wide = (uintptr_t)dst % sizeof(uint4) == 0 ? len / sizeof(uint4) : 0;
    for (uint64_t at = thread(); at < wide; at += threads()) ((uint4 *)dst)[at] = line;
    for (uint64_t at = wide * sizeof(uint4) + thread(); at < len; at += threads()) ((uint8_t *)dst)[at] = (uint8_t)value;
}
