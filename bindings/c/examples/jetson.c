/* A frame loop on a Jetson, or beside a card: frames in memory that CUDA pins, gemm8 as a kernel on
 * the GPU, and the same bytes as DLPack tensors.
 *
 *     cc -std=c11 jetson.c $(pkg-config --cflags --libs contigo) -o jetson && ./jetson gemm8.ptx
 *
 * gemm8.ptx is examples/gemm8/kernels/gemm8.ptx. To build this program you need nothing of CUDA.
 * Without NVIDIA's driver, or without a GPU, it prints the reason and exits with 0. */

#include "check.h"
#include <contigo.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* dlpack.h 1.1, as a framework brings it along: as much of it as is printed here. */
enum { kDLInt = 0, kDLCUDA = 2, kDLCUDAHost = 3 };
typedef struct DLManagedTensorVersioned {
    struct {
        uint32_t major, minor;
    } version;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    struct {
        void *data;
        struct {
            int32_t device_type, device_id;
        } device;
    } dl_tensor;
} DLManagedTensorVersioned;

enum { M = 4, N = 16, K = 64, SLOT = 4096, SLOTS = 4, FRAMES = 4, TIMEOUT_US = 1000 * 1000 };

/* Lends a buffer to a framework, and prints whose pointer the framework gets. The framework is done
 * with it at once. */
static int32_t lend(contigo_buf buf, const char *whose)
{
    static const int64_t shape[2] = {M, N};
    contigo_tensor_options options = {.struct_size = sizeof options, .shape = shape, .ndim = 2, .dtype_code = kDLInt, .dtype_bits = 32,
                                      .align_bytes = 64};
    void *lent;
    CHECK(contigo_buf_lend(buf, &options, &lent));
    DLManagedTensorVersioned *tensor = lent;
    const int32_t type = tensor->dl_tensor.device.device_type;
    printf("the tensor of %s: %s (%" PRId32 ", device %" PRId32 ") at %#" PRIxPTR "\n", whose,
           type == kDLCUDAHost ? "kDLCUDAHost" : type == kDLCUDA ? "kDLCUDA" : "something else", type, tensor->dl_tensor.device.device_id,
           (uintptr_t)tensor->dl_tensor.data);
    tensor->deleter(tensor);
    CHECK(contigo_buf_unlend(buf));
    return type;
}

int main(int argc, char **argv)
{
    contigo_port port = 0;
    contigo_region region = 0;
    contigo_pool pool = 0;
    contigo_module module = 0;
    contigo_engine engine = 0;
    static uint8_t ptx[64 * 1024];
    contigo_buf a = 0, b = 0, bias = 0, c = 0;
    contigo_job job = 0;
    unsigned wrong = 0;

    contigo_status status = contigo_port_find("cuda:0", &port);
    if (status == CONTIGO_E_NO_LIBRARY || status == CONTIGO_E_CUDA) {
        char text[1024];
        contigo_last_error(text, sizeof text);
        printf("no GPU here: %s: %s\n", contigo_status_name(status), text);
        return EXIT_SUCCESS;
    }
    check(status, "contigo_port_find");

    /* Pinned once, when the program begins. The frames' pool is carved from it. */
    CHECK(contigo_region_open("cuda:0", 1 << 20, &region));
    CHECK(contigo_pool_open(region, SLOT, SLOTS, 256, &pool));

    /* The program's own kernel, from a file: void gemm8(a, b, bias, c, m, n, k, flags). */
    FILE *file = argc > 1 ? fopen(argv[1], "rb") : NULL;
    const size_t len = file ? fread(ptx, 1, sizeof ptx - 1, file) : 0;
    if (!file || fclose(file) || len == 0) {
        fprintf(stderr, "name the file gemm8.ptx\n");
        return EXIT_FAILURE;
    }
    CHECK(contigo_module_load(port, ptx, len + 1, &module));
    const contigo_parameter parameters[] = {
        {.operand = {.use = CONTIGO_READS}}, {.operand = {.use = CONTIGO_READS}},
        {.operand = {.use = CONTIGO_READS}}, {.operand = {.use = CONTIGO_WRITES}},
        {.words = 1}, {.words = 1}, {.words = 1}, {.words = 1},
    };
    CHECK(contigo_engine_open_kernel(module, "gemm8", parameters, sizeof parameters / sizeof parameters[0], &engine));
    CHECK(contigo_pool_take(pool, &a));
    CHECK(contigo_pool_take(pool, &b));
    CHECK(contigo_pool_take(pool, &bias));
    CHECK(contigo_pool_take(pool, &c));

    /* Every frame is multiplied with ones, and the column's number is added. */
    memset(map(b, CONTIGO_WRITE), 1, K * N);
    int32_t *columns = map(bias, CONTIGO_WRITE);
    for (int column = 0; column < N; column++)
        columns[column] = column;
    CHECK(contigo_buf_unmap(b));
    CHECK(contigo_buf_unmap(bias));

    /* One block of 256 threads, no shared memory; then the kernel's own scalars. */
    const uint32_t args[] = {1, 1, 1, 256, 1, 1, 0, M, N, K, 0};
    const size_t words = sizeof args / sizeof args[0];
    const contigo_operand operands[4] = {
        {.buf = a, .len_bytes = M * K},
        {.buf = b, .len_bytes = K * N},
        {.buf = bias, .len_bytes = N * sizeof(int32_t)},
        {.buf = c, .len_bytes = M * N * sizeof(int32_t)},
    };
    for (int frame = 0; frame < FRAMES; frame++) {
        /* The CPU's turn, then the GPU's, on the same bytes. */
        memset(map(a, CONTIGO_WRITE), frame, M * K);
        CHECK(contigo_buf_unmap(a));
        CHECK(contigo_job_start(engine, operands, 4, args, words, 0, &job));
        CHECK(contigo_job_wait(job, TIMEOUT_US, NULL));
        const int32_t *sums = map(c, CONTIGO_READ);
        for (int at = 0; at < M * N; at++)
            wrong += sums[at] != K * frame + at % N;
        CHECK(contigo_buf_unmap(c));
    }

    /* A framework gets the CPU's pointer while the CPU owns the buffer, and the GPU's pointer while
     * the GPU owns it. A kernel of TVM or TensorRT can read through that one next, with nothing
     * between. */
    wrong += lend(c, "the CPU's buffer") != kDLCUDAHost;
    CHECK(contigo_job_start(engine, operands, 4, args, words, 0, &job));
    CHECK(contigo_job_wait_device(job, TIMEOUT_US, NULL));
    wrong += lend(c, "the GPU's buffer") != kDLCUDA;
    for (int at = 0; at < 4; at++)
        CHECK(contigo_buf_take_back(operands[at].buf));

    contigo_region_info counts = {.struct_size = sizeof counts};
    CHECK(contigo_region_get_info(region, &counts));
    wrong += counts.bytes_copied != 0;
    printf("%d frames, %u wrong, bytes copied: %" PRIu64 "\n", FRAMES, wrong, counts.bytes_copied);

    for (int at = 0; at < 4; at++)
        CHECK(contigo_buf_release(operands[at].buf));
    CHECK(contigo_engine_close(engine));
    CHECK(contigo_module_close(module));
    CHECK(contigo_pool_close(pool));
    CHECK(contigo_region_close(region));
    CHECK(contigo_port_close(port));
    return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
