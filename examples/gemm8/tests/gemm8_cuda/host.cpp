// Runs examples/gemm8/kernels/gemm8.cu on a CPU: what CUDA defines is defined here, and the threads of a grid run one after another. Jobs come on
// standard input, as host.rs writes them, and what a job wrote goes to standard output. Every buffer is an allocation of
// its own that is as long as the job needs it, so that the address sanitizer sees the first byte beyond.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

struct dim3 { uint32_t x, y, z; };
// Other types' memory is read and written through it, as CUDA's may.
struct __attribute__((may_alias, aligned(16))) uint4 { uint32_t x, y, z, w; };
static dim3 gridDim, blockDim, blockIdx, threadIdx;
#define __global__
#define __device__
#include "../../kernels/gemm8.cu"

enum Kernel : uint32_t { GEMM8, COPY_BYTES, FILL_BYTES };

// Bytes that a kernel must not touch, on both sides of what it writes.
static const size_t GUARD = 32;
static const int UNTOUCHED = 0xEE;

static void fail(const char *what) {
    fprintf(stderr, "host: %s\n", what);
    exit(1);
}

static bool read_all(void *to, size_t len) { return fread(to, 1, len, stdin) == len; }

static void write_all(const void *from, size_t len) {
    if (fwrite(from, 1, len, stdout) != len) fail("standard output takes no more");
}

// `len` bytes, `offset` bytes beyond a multiple of 64.
struct Buffer {
    uint8_t *whole, *bytes;
    size_t len;

    Buffer(size_t len, size_t offset) : len(len) {
        void *memory;
        if (posix_memalign(&memory, 64, len + offset)) fail("no memory");
        whole = (uint8_t *)memory;
        bytes = whole + offset;
    }
    ~Buffer() { free(whole); }
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;
};

struct Operand : Buffer {
    Operand(size_t len, size_t offset) : Buffer(len, offset) {
        if (!read_all(bytes, len)) fail("a job ends early");
    }
};

template <typename Body> static void launch(Body body) {
    for (blockIdx.z = 0; blockIdx.z < gridDim.z; blockIdx.z++)
        for (blockIdx.y = 0; blockIdx.y < gridDim.y; blockIdx.y++)
            for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++)
                for (threadIdx.z = 0; threadIdx.z < blockDim.z; threadIdx.z++)
                    for (threadIdx.y = 0; threadIdx.y < blockDim.y; threadIdx.y++)
                        for (threadIdx.x = 0; threadIdx.x < blockDim.x; threadIdx.x++) body();
}

static void gemm8_job(uint32_t m, uint32_t n, uint32_t k, uint32_t flags) {
    Operand a((size_t)m * k, 0), b((size_t)k * n, 0), bias(4 * (size_t)n, 0);
    Buffer c((size_t)m * n * (flags & INT8 ? 1 : 4), 0);
    memset(c.bytes, UNTOUCHED, c.len);
    launch([&] { gemm8((int8_t *)a.bytes, (int8_t *)b.bytes, (int32_t *)bias.bytes, c.bytes, m, n, k, flags); });
    write_all(c.bytes, c.len);
}

static void bytes_job(uint32_t kernel, uint32_t dst_offset, uint32_t src_offset, uint32_t len, uint32_t value) {
    Buffer dst(GUARD + len + GUARD, dst_offset);
    memset(dst.bytes, UNTOUCHED, dst.len);
    if (kernel == COPY_BYTES) {
        Operand src(len, src_offset);
        launch([&] { copy_bytes(dst.bytes + GUARD, src.bytes, len); });
    } else {
        launch([&] { fill_bytes(dst.bytes + GUARD, value, len); });
    }
    write_all(dst.bytes, dst.len);
}

int main() {
    uint32_t kernel, rest[4];
    while (read_all(&kernel, sizeof kernel)) {
        bool whole = read_all(&gridDim, sizeof gridDim) && read_all(&blockDim, sizeof blockDim) && read_all(rest, sizeof rest);
        if (!whole) fail("a job ends early");
        if (kernel == GEMM8) gemm8_job(rest[0], rest[1], rest[2], rest[3]);
        else if (kernel == COPY_BYTES || kernel == FILL_BYTES) bytes_job(kernel, rest[0], rest[1], rest[2], rest[3]);
        else fail("no such kernel");
    }
    if (fflush(stdout)) fail("standard output takes no more");
    return 0;
}
