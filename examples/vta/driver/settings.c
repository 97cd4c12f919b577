/* Where the device and its memory are, the lock, and the texts of refusals. */

#define _GNU_SOURCE
#include "internal.h"
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct vta vta;
struct contigo_vta_options vta_options;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char last_error[1024];
/* The texts of contigo_vta_use. */
static char texts[3][CONTIGO_MAX_NAME_BYTES + 1];

uint64_t vta_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* Another thread has it for as long as its run takes. */
bool vta_lock(uint32_t timeout_us)
{
    const struct timespec step = {.tv_nsec = 50 * 1000};
    if (timeout_us == 0)
        timeout_us = vta_options.timeout_us != 0 ? vta_options.timeout_us : 10 * 1000 * 1000;
    uint64_t begin_us = vta_now_us();
    while (pthread_mutex_trylock(&lock) != 0) {
        if (vta_now_us() - begin_us > timeout_us) {
            fprintf(stderr, "contigo-vta: another thread's run took more than %" PRIu32 " us\n", timeout_us);
            return false;
        }
        nanosleep(&step, NULL);
    }
    return true;
}

void vta_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

bool vta_refuse(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(last_error, sizeof last_error, format, arguments);
    va_end(arguments);
    fprintf(stderr, "contigo-vta: %s\n", last_error);
    return false;
}

bool vta_refused_by(const char *call, contigo_status status)
{
    char text[768];
    contigo_last_error(text, sizeof text);
    return vta_refuse("%s: %s: %s", call, contigo_status_name(status), text);
}

void vta_give_up(void)
{
    fprintf(stderr, "contigo-vta: the caller cannot be told, and would go on with wrong data; the program ends here\n");
    abort();
}

const char *contigo_vta_last_error(void)
{
    return last_error;
}

int contigo_vta_use(const struct contigo_vta_options *options)
{
    const char *given[3] = {options->device, options->port, options->memory};
    const char **kept[3] = {&vta_options.device, &vta_options.port, &vta_options.memory};
    bool done = true;
    if (!vta_lock(0))
        return -1;
    if (vta.open)
        done = vta_refuse("contigo_vta_use: the device is open already");
    for (int at = 0; done && at < 3; at++) {
        *kept[at] = NULL;
        if (given[at] == NULL)
            continue;
        if (strlen(given[at]) >= sizeof texts[at])
            done = vta_refuse("contigo_vta_use: a name has more than %d bytes", CONTIGO_MAX_NAME_BYTES);
        else
            *kept[at] = strcpy(texts[at], given[at]);
    }
    vta_options.bytes = options->bytes;
    vta_options.timeout_us = options->timeout_us;
    vta_unlock();
    return done ? 0 : -1;
}

/* A number of the environment. */
static bool number(const char *name, uint64_t *value)
{
    const char *text = getenv(name);
    char *end;
    if (*value != 0 || text == NULL)
        return true;
    errno = 0;
    *value = strtoull(text, &end, 0);
    return (errno == 0 && end != text && *end == '\0') || vta_refuse("%s=%s is no number", name, text);
}

static bool settings(void)
{
    uint64_t bytes = vta_options.bytes, timeout_us = vta_options.timeout_us;
    if (vta_options.device == NULL)
        vta_options.device = getenv("CONTIGO_VTA_DEVICE");
    if (vta_options.port == NULL)
        vta_options.port = getenv("CONTIGO_VTA_PORT");
    if (vta_options.memory == NULL)
        vta_options.memory = getenv("CONTIGO_VTA_MEMORY");
    if (vta_options.device == NULL || vta_options.memory == NULL)
        return vta_refuse("say where VTA is: CONTIGO_VTA_DEVICE=uio:vta@43c00000, CONTIGO_VTA_MEMORY=u-dma-buf:udmabuf0, "
                          "CONTIGO_VTA_PORT=zynq-acp");
    if (!number("CONTIGO_VTA_BYTES", &bytes) || !number("CONTIGO_VTA_TIMEOUT_US", &timeout_us))
        return false;
    if (bytes > SIZE_MAX || timeout_us > 3600u * 1000 * 1000)
        return vta_refuse("CONTIGO_VTA_BYTES or CONTIGO_VTA_TIMEOUT_US is too large; a run has an hour at most");
    vta_options.bytes = bytes != 0 ? (size_t)bytes : (size_t)96 << 20;
    vta_options.timeout_us = timeout_us != 0 ? (uint32_t)timeout_us : 10 * 1000 * 1000;
    return true;
}

/* A program that died may have left a run under way, whose memory this program would be given. */
static bool is_at_rest(void)
{
#ifdef VTA_TARGET_DE10NANO
    uint32_t control = vta_read(CONTROL);
    bool rests = control != UINT32_MAX && (control & START) == 0;
#else
    uint32_t control = vta_read(CONTROL);
    /* The other stages restart by themselves once a run was started, and are never idle then. */
    bool started = (vta_read(COMPUTE) & AUTO_RESTART) != 0;
    bool rests = control != UINT32_MAX && (control & AP_IDLE) != 0 && (!started || vta_read(DONE) == 1);
#endif
    if (rests || contigo_device_reset(vta.device) == CONTIGO_OK)
        return true;
    return vta_refuse(control == UINT32_MAX ? "%s answers all ones: the bitstream is not loaded, or its clock is off"
                                            : "%s is at work, for a program that ended; load the bitstream again",
                      vta_options.device);
}

bool vta_open(void)
{
    contigo_port named = 0;
    contigo_status status;
    if (vta.open)
        return true;
    if (!settings())
        return false;
    if (vta.device == 0 && (status = contigo_device_open(vta_options.device, &vta.device)) != CONTIGO_OK)
        return vta_refused_by("contigo_device_open", status);
    if (vta_options.port != NULL && (status = contigo_port_find(vta_options.port, &named)) != CONTIGO_OK)
        return vta_refused_by("contigo_port_find", status);
    if (vta.port == 0 && (status = contigo_device_port(vta.device, named, &vta.port)) != CONTIGO_OK)
        return vta_refused_by("contigo_device_port", status);
    if (vta.region == 0) {
        contigo_region_options memory = {.struct_size = sizeof memory, .len_bytes = vta_options.bytes, .align_bytes = VTA_PAGE_BYTES,
                                         .device = vta.device};
        if ((status = contigo_region_open_with(vta_options.memory, &memory, &vta.region)) != CONTIGO_OK)
            return vta_refused_by("contigo_region_open_with", status);
    }
    /* Polled: VTA's designs for these boards have no interrupt. */
    if (vta.registers == 0 && (status = contigo_device_attach(vta.device, named, 0, 1, &vta.registers)) != CONTIGO_OK)
        return vta_refused_by("contigo_device_attach", status);
    vta.open = is_at_rest();
    return vta.open;
}

void contigo_vta_get_stats(struct contigo_vta_stats *stats)
{
    if (!vta_lock(0))
        return;
    *stats = vta.stats;
    for (const struct block *block = vta.blocks; block < vta.blocks + vta.n_blocks; block++)
        *(block->live ? &stats->blocks : &stats->free_blocks) += 1;
    vta_unlock();
}

int contigo_vta_close(void)
{
    bool done = true;
    if (!vta_lock(0))
        return -1;
    if (vta.runs)
        done = vta_refuse("contigo_vta_close: a run did not end, and the device may still have its memory");
    else if (vta.open)
        done = vta_close_blocks() && contigo_registers_close(vta.registers) == CONTIGO_OK && contigo_region_close(vta.region) == CONTIGO_OK &&
               contigo_port_close(vta.port) == CONTIGO_OK && contigo_device_close(vta.device) == CONTIGO_OK;
    if (done) {
        memset(&vta, 0, sizeof vta);
        vta_options.device = vta_options.port = vta_options.memory = NULL;
    }
    vta_unlock();
    return done ? 0 : -1;
}
