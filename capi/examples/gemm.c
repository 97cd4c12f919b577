/* One matrix product on the simulated board: open, carve, fill, run, compare, close.
 *
 *     cc -std=c11 gemm.c $(pkg-config --cflags --libs contigo) -o gemm && ./gemm
 *
 * On a board only three lines differ: the heap's kind and name, the port, and the engine's UIO device. */

#include <contigo.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { M = 4, N = 16, K = 64, SLOT = 4096, SLOTS = 4 };

/* Ends the program with the text of the refusal. */
static void check(contigo_status status, const char *what)
{
    if (status != CONTIGO_OK) {
        char text[1024];
        contigo_last_error(text, sizeof text);
        fprintf(stderr, "%s: %s: %s\n", what, contigo_status_name(status), text);
        exit(EXIT_FAILURE);
    }
}
#define CHECK(call) check((call), #call)

/* A buffer's bytes, to write. The device cannot have them before contigo_buf_unmap. */
static void *map(contigo_buf buf, uint32_t access)
{
    void *bytes = NULL;
    CHECK(contigo_buf_map(buf, access, &bytes, NULL));
    return bytes;
}

int main(void)
{
    contigo_sim sim;
    contigo_port port;
    contigo_heap heap;
    contigo_pool pool;
    contigo_engine engine;
    contigo_buf a, b, bias, c;
    contigo_job job;

    contigo_sim_options board = {.struct_size = sizeof board, .seed = 7};
    CHECK(contigo_sim_open(&board, &sim));
    CHECK(contigo_sim_port(sim, 0, &port));

    contigo_heap_options memory = {.struct_size = sizeof memory, .kind = CONTIGO_HEAP_SIM, .sim = sim, .len_bytes = 64 * 1024};
    CHECK(contigo_heap_open(&memory, &heap));
    CHECK(contigo_pool_open(heap, SLOT, SLOTS, 256, &pool));

    contigo_engine_options device = {.struct_size = sizeof device, .kind = CONTIGO_ENGINE_GEMM8, .port = port, .sim = sim};
    CHECK(contigo_engine_open(&device, &engine));

    CHECK(contigo_pool_take(pool, &a));
    CHECK(contigo_pool_take(pool, &b));
    CHECK(contigo_pool_take(pool, &bias));
    CHECK(contigo_pool_take(pool, &c));

    /* The CPU's turn: pointers, and no bus address. */
    int8_t *a_bytes = map(a, CONTIGO_WRITE);
    int8_t *b_bytes = map(b, CONTIGO_WRITE);
    int32_t *bias_words = map(bias, CONTIGO_WRITE);
    for (int i = 0; i < M * K; i++)
        a_bytes[i] = (int8_t)(i % 7 - 3);
    for (int i = 0; i < K * N; i++)
        b_bytes[i] = (int8_t)(i % 5 - 2);
    for (int i = 0; i < N; i++)
        bias_words[i] = 10 * i;
    CHECK(contigo_buf_unmap(a));
    CHECK(contigo_buf_unmap(b));
    CHECK(contigo_buf_unmap(bias));

    /* The device's turn. The cache maintenance that these bytes need on this port is done here, and no other. */
    contigo_gemm8_args args = {.struct_size = sizeof args, .m = M, .n = N, .k = K, .output = CONTIGO_GEMM8_INT32};
    contigo_operand operands[4] = {
        {.buf = a, .len_bytes = M * K},
        {.buf = b, .len_bytes = K * N},
        {.buf = bias, .len_bytes = N * sizeof(int32_t)},
        {.buf = c, .len_bytes = M * N * sizeof(int32_t)},
    };
    CHECK(contigo_gemm8_start(engine, &args, operands, &job));
    CHECK(contigo_job_wait(job, 20 * 1000));

    /* The CPU's turn again. */
    const int8_t *left = map(a, CONTIGO_READ);
    const int8_t *right = map(b, CONTIGO_READ);
    const int32_t *sums = map(c, CONTIGO_READ);
    int wrong = 0;
    for (int row = 0; row < M; row++) {
        for (int column = 0; column < N; column++) {
            int32_t sum = 10 * column;
            for (int i = 0; i < K; i++)
                sum += left[row * K + i] * right[i * N + column];
            wrong += sums[row * N + column] != sum;
        }
    }
    printf("C[0] =");
    for (int column = 0; column < N; column++)
        printf(" %" PRId32, sums[column]);
    printf("\n%d of %d sums are wrong\n", wrong, M * N);
    CHECK(contigo_buf_unmap(a));
    CHECK(contigo_buf_unmap(b));
    CHECK(contigo_buf_unmap(c));

    contigo_heap_stats stats = {.struct_size = sizeof stats};
    CHECK(contigo_heap_get_stats(heap, &stats));
    printf("bytes copied: %" PRIu64 "\n", stats.bytes_copied);

    CHECK(contigo_buf_release(a));
    CHECK(contigo_buf_release(b));
    CHECK(contigo_buf_release(bias));
    CHECK(contigo_buf_release(c));
    CHECK(contigo_engine_close(engine));
    CHECK(contigo_pool_close(pool));
    CHECK(contigo_heap_close(heap));
    CHECK(contigo_port_close(port));
    CHECK(contigo_sim_close(sim));
    return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
