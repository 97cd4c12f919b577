/* docs/jobs.md and docs/memories.md: a job, a queue, a device that is reset.
 * Each call answers a contigo_status, which a program looks at. */

#include <contigo.h>
#include <stdio.h>

static int wrong;

/* One job, and several. */
static void jobs(contigo_engine engine, contigo_pool pool)
{
    contigo_job job, ended = 0;
    contigo_operand operands[2] = {{.len_bytes = 64}, {.len_bytes = 64}};
    contigo_pool_take(pool, &operands[0].buf);
    contigo_pool_take(pool, &operands[1].buf);

    contigo_job_start(engine, operands, 2, NULL, 0, 0, &job);
    contigo_job_wait(job, 20 * 1000, NULL);

    contigo_job_start(engine, operands, 2, NULL, 0, 0, &job);          /* again, while there is room */
    contigo_queue_next(engine, 20 * 1000, &ended, NULL);            /* ended is 0: none has */
    wrong += ended != job;
    wrong += contigo_buf_release(operands[0].buf) != CONTIGO_OK;
    wrong += contigo_buf_release(operands[1].buf) != CONTIGO_OK;
}

/* The same device on a board where every job gets stuck. */
static void stuck(void)
{
    contigo_sim sim = 0;
    contigo_device device = 0;
    contigo_region region = 0;
    contigo_pool pool = 0;
    contigo_engine engine = 0;
    contigo_job job = 0;
    contigo_operand operands[2] = {{.len_bytes = 64}, {.len_bytes = 64}};
    contigo_sim_options faults = {.struct_size = sizeof faults, .seed = 1, .stuck = 1000};
    contigo_sim_open(&faults, &sim);
    contigo_sim_device(sim, "zdma", &device);
    contigo_device_memory(device, "sim", 1 << 16, &region);
    contigo_pool_open(region, 1024, 4, 256, &pool);
    contigo_engine_options options = {.struct_size = sizeof options, .driver = "zdma", .device = device};
    contigo_engine_open(&options, &engine);
    contigo_pool_take(pool, &operands[0].buf);
    contigo_pool_take(pool, &operands[1].buf);
    contigo_job_start(engine, operands, 2, NULL, 0, 0, &job);
    wrong += contigo_job_wait(job, 20 * 1000, NULL) != CONTIGO_E_WILL_NOT_STOP;
    wrong += contigo_buf_release(operands[1].buf) != CONTIGO_E_DEVICE_OWNED;

    contigo_device_reset(device);
    contigo_queue_stop(engine);
    contigo_job_wait(job, 0, NULL);

    wrong += contigo_buf_release(operands[1].buf) != CONTIGO_OK;
}

int main(void)
{
    contigo_device device = 0;
    contigo_region region = 0, of_a_device = 0, alone = 0;
    contigo_pool pool = 0;
    contigo_engine engine = 0;
    contigo_device_open("sim:zdma", &device);
    contigo_device_memory(device, "sim", 1 << 16, &region);
    contigo_pool_open(region, 1024, 4, 256, &pool);
    contigo_engine_options options = {.struct_size = sizeof options, .driver = "zdma", .device = device};
    contigo_engine_open(&options, &engine);
    jobs(engine, pool);
    stuck();

    contigo_device_memory(device, "sim", 1 << 20, &of_a_device);
    contigo_region_open("sim:8", 1 << 20, &alone);
    wrong += of_a_device == 0 || alone == 0;
    printf("jobs: %d wrong\n", wrong);
    return wrong;
}
