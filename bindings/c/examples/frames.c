/* A frame loop: a pool of frames, a copy engine, and retries when something goes wrong.
 *
 * The program writes a camera's frame into a buffer. A copy engine moves it to another one, as a
 * resizer or a filter would, and the CPU compares it. The simulated device fails now and then: it
 * hangs, reports errors, or stops early. No frame is lost to that, and none leaks. At the end the
 * program makes some mistakes, to show that each is refused. */

#include "check.h"
#include <contigo.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { FRAME = 4096, FRAMES = 200, SLOTS = 4, TIMEOUT_US = 1000 };

/* Fills a buffer, as a camera would. */
static void fill(contigo_buf frame, unsigned number)
{
    void *bytes;
    size_t len;
    CHECK(contigo_buf_map(frame, CONTIGO_WRITE, &bytes, &len));
    for (size_t i = 0; i < len; i++)
        ((unsigned char *)bytes)[i] = (unsigned char)(number + i);
    CHECK(contigo_buf_unmap(frame));
}

/* How many bytes differ from the camera's frame. */
static unsigned wrong_bytes(contigo_buf frame, unsigned number)
{
    void *bytes;
    size_t len;
    unsigned wrong = 0;
    CHECK(contigo_buf_map(frame, CONTIGO_READ, &bytes, &len));
    for (size_t i = 0; i < len; i++)
        wrong += ((const unsigned char *)bytes)[i] != (unsigned char)(number + i);
    CHECK(contigo_buf_unmap(frame));
    return wrong;
}

/* One frame through the engine. A device that failed was stopped, and the CPU owns the frames
 * again: try once more. */
static contigo_status copy(contigo_engine engine, contigo_buf from, contigo_buf to, unsigned *retries)
{
    const contigo_operand operands[2] = {{.buf = from, .len_bytes = FRAME}, {.buf = to, .len_bytes = FRAME}};
    contigo_status status = CONTIGO_OK;
    for (int attempt = 0; attempt < 10; attempt++) {
        contigo_job job = 0;
        status = contigo_job_start(engine, operands, 2, NULL, 0, 0, &job);
        if (status == CONTIGO_OK)
            status = contigo_job_wait(job, TIMEOUT_US, NULL);
        if (status != CONTIGO_E_TIMEOUT && status != CONTIGO_E_FAULT && status != CONTIGO_E_SHORT_TRANSFER)
            break;
        ++*retries;
    }
    return status;
}

/* A program's mistakes, and the answer to each. */
static unsigned misuse(contigo_pool pool, contigo_port port)
{
    unsigned missed = 0;
    contigo_buf frame = 0;
    void *bytes;
    uint64_t addr;
    contigo_status status;
#define REFUSED(call, expected) (status = (call), missed += status != (expected), say(stdout, #call, status))

    CHECK(contigo_pool_take(pool, &frame));
    REFUSED(contigo_buf_take_back(frame), CONTIGO_E_CPU_OWNED);
    CHECK(contigo_buf_map(frame, CONTIGO_READ, &bytes, NULL));
    REFUSED(contigo_buf_give(frame, port, 0, FRAME, CONTIGO_READS, &addr), CONTIGO_E_MAPPED);
    CHECK(contigo_buf_unmap(frame));
    CHECK(contigo_buf_give(frame, port, 0, FRAME, CONTIGO_READS, &addr));
    printf("the frame is at bus address 0x%" PRIx64 "\n", addr);
    REFUSED(contigo_buf_map(frame, CONTIGO_READ, &bytes, NULL), CONTIGO_E_DEVICE_OWNED);
    REFUSED(contigo_buf_release(frame), CONTIGO_E_DEVICE_OWNED);
    CHECK(contigo_buf_take_back(frame));
    CHECK(contigo_buf_release(frame));
    REFUSED(contigo_buf_release(frame), CONTIGO_E_STALE);
    REFUSED(contigo_buf_map(frame, CONTIGO_READ, &bytes, NULL), CONTIGO_E_STALE);
    REFUSED(contigo_buf_release(0), CONTIGO_E_HANDLE);
    REFUSED(contigo_buf_release(pool), CONTIGO_E_KIND);
    REFUSED(contigo_pool_take(pool, NULL), CONTIGO_E_NULL);
    return missed;
}

int main(void)
{
    contigo_sim sim = 0;
    contigo_port port = 0;
    contigo_region region = 0;
    contigo_pool pool = 0;
    contigo_device device = 0;
    contigo_engine engine = 0;

    contigo_sim_options board = {.struct_size = sizeof board, .seed = 11, .late_irq = 100, .error = 100, .short_transfer = 100, .hang = 100};
    CHECK(contigo_sim_open(&board, &sim));
    CHECK(contigo_sim_port(sim, 0, &port));
    contigo_region_options memory = {.struct_size = sizeof memory, .len_bytes = 64 * 1024, .align_bytes = FRAME, .sim = sim};
    CHECK(contigo_region_open_with("sim", &memory, &region));
    CHECK(contigo_pool_open(region, FRAME, SLOTS, 0, &pool));
    CHECK(contigo_sim_device(sim, "zdma", &device));
    contigo_engine_options options = {.struct_size = sizeof options, .driver = "zdma", .device = device, .port = port};
    CHECK(contigo_engine_open(&options, &engine));

    unsigned wrong = 0, retries = 0;
    for (unsigned number = 0; number < FRAMES; number++) {
        contigo_buf from = 0, to = 0;
        CHECK(contigo_pool_take(pool, &from));
        CHECK(contigo_pool_take(pool, &to));
        fill(from, number);
        CHECK(copy(engine, from, to, &retries));
        wrong += wrong_bytes(to, number);
        CHECK(contigo_buf_release(from));
        CHECK(contigo_buf_release(to));
    }
    size_t free_slots;
    CHECK(contigo_pool_free_slots(pool, &free_slots));
    contigo_engine_info jobs = {.struct_size = sizeof jobs};
    CHECK(contigo_engine_get_info(engine, &jobs));
    printf("%d frames, %u wrong bytes, %u retries, %zu of %d frames free\n", FRAMES, wrong, retries, free_slots, SLOTS);
    printf("jobs: %" PRIu64 " started, %" PRIu64 " completed, stopped %" PRIu64 " times\n", jobs.started, jobs.completed, jobs.stops);

    unsigned missed = misuse(pool, port);
    CHECK(contigo_engine_close(engine));
    CHECK(contigo_device_close(device));
    CHECK(contigo_pool_close(pool));
    CHECK(contigo_region_close(region));
    CHECK(contigo_port_close(port));
    CHECK(contigo_sim_close(sim));
    printf("%u misuses were missed\n", missed);
    return wrong == 0 && missed == 0 && free_slots == SLOTS ? EXIT_SUCCESS : EXIT_FAILURE;
}
