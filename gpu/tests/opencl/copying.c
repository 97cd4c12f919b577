/* A device that keeps a copy, as OpenCL allows one for CL_MEM_USE_HOST_PTR (OpenCL 3.0, 5.2.1:
 * "implementations are allowed to cache the buffer contents"). It stands before the machine's
 * loader. A buffer has bytes of its own: a mapping brings them to the host's, an unmapping of what
 * was mapped to write takes them back. Nothing else does. A hand-over that is left out is seen so,
 * which a device that shares the host's bytes hides.
 *
 * CONTIGO_FAIL_MAP=n: the mapping of this number is refused. CONTIGO_BORROWED=1: the process aborts
 * where a hand-over reads a byte of 0x5B, which a test has borrowed.
 * CONTIGO_SLOW_UNMAP=1: an unmapping of 8192 bytes is given half a second after it was asked
 * for. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void *H;
enum { USE_HOST_PTR = 1 << 3, COPY_HOST_PTR = 1 << 5, MAP_WRITE = 1 << 1, MAP_INVALIDATE = 1 << 2, MOST = 1 << 14 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct { H mem; char *host; } blocks[MOST];
static struct { H mem; char *at; size_t offset, size; uint64_t flags; } maps[MOST];

static void *real(const char *name) {
    static void *loader;
    if (!loader) loader = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    void *found = loader ? dlsym(loader, name) : NULL;
    if (!found) abort();
    return found;
}

/* A handle that is used again is another block: the newest counts. */
static void remember(H mem, char *host) {
    pthread_mutex_lock(&lock);
    size_t at = 0;
    while (at < MOST && blocks[at].mem && blocks[at].mem != mem) at++;
    if (at == MOST) abort();
    blocks[at].mem = mem, blocks[at].host = host;
    pthread_mutex_unlock(&lock);
}

static char *host_of(H mem) {
    pthread_mutex_lock(&lock);
    char *host = NULL;
    for (size_t at = 0; at < MOST && blocks[at].mem && !host; at++)
        if (blocks[at].mem == mem) host = blocks[at].host;
    pthread_mutex_unlock(&lock);
    return host;
}

static void not_borrowed(const char *from, size_t size) {
    if (getenv("CONTIGO_BORROWED") && memchr(from, 0x5B, size)) abort();
}

int32_t clEnqueueWriteBuffer(H queue, H mem, uint32_t blocking, size_t offset, size_t size, const void *from, uint32_t n, const H *wait,
                             H *event) {
    int32_t (*write)(H, H, uint32_t, size_t, size_t, const void *, uint32_t, const H *, H *) = real("clEnqueueWriteBuffer");
    not_borrowed(from, size);
    return write(queue, mem, blocking, offset, size, from, n, wait, event);
}

H clCreateBuffer(H context, uint64_t flags, size_t size, void *host, int32_t *error) {
    H (*create)(H, uint64_t, size_t, void *, int32_t *) = real("clCreateBuffer");
    if (!(flags & USE_HOST_PTR)) return create(context, flags, size, host, error);
    H mem = create(context, (flags & ~(uint64_t)USE_HOST_PTR) | COPY_HOST_PTR, size, host, error);
    if (mem) remember(mem, host);
    return mem;
}

H clCreateSubBuffer(H block, uint64_t flags, uint32_t type, const size_t *region, int32_t *error) {
    H (*create)(H, uint64_t, uint32_t, const void *, int32_t *) = real("clCreateSubBuffer");
    H mem = create(block, flags, type, region, error);
    if (mem) remember(mem, host_of(block) + region[0]);
    return mem;
}

void *clEnqueueMapBuffer(H queue, H mem, uint32_t blocking, uint64_t flags, size_t offset, size_t size, uint32_t n, const H *wait, H *event,
                         int32_t *error) {
    int32_t (*read)(H, H, uint32_t, size_t, size_t, void *, uint32_t, const H *, H *) = real("clEnqueueReadBuffer");
    char *at = host_of(mem) + offset;
    static int count;
    const char *fails = getenv("CONTIGO_FAIL_MAP");
    if (fails && ++count == atoi(fails)) return *error = -12, NULL;
    pthread_mutex_lock(&lock);
    size_t slot = 0;
    while (slot < MOST && maps[slot].mem) slot++;
    if (slot == MOST || flags & MAP_INVALIDATE) abort();
    maps[slot].mem = mem, maps[slot].at = at, maps[slot].offset = offset, maps[slot].size = size, maps[slot].flags = flags;
    pthread_mutex_unlock(&lock);
    *error = read(queue, mem, blocking, offset, size, at, n, wait, event);
    return *error ? NULL : at;
}

int32_t clEnqueueUnmapMemObject(H queue, H mem, void *at, uint32_t n, const H *wait, H *event) {
    int32_t (*write)(H, H, uint32_t, size_t, size_t, const void *, uint32_t, const H *, H *) = real("clEnqueueWriteBuffer");
    int32_t (*marker)(H, uint32_t, const H *, H *) = real("clEnqueueMarkerWithWaitList");
    pthread_mutex_lock(&lock);
    size_t slot = 0;
    while (slot < MOST && !(maps[slot].mem == mem && maps[slot].at == at)) slot++;
    if (slot == MOST) abort();
    size_t offset = maps[slot].offset, size = maps[slot].size;
    uint64_t flags = maps[slot].flags;
    maps[slot].mem = NULL;
    pthread_mutex_unlock(&lock);
    if (size == 8192 && getenv("CONTIGO_SLOW_UNMAP")) usleep(500000);
    if (flags & MAP_WRITE) not_borrowed(at, size);
    return flags & MAP_WRITE ? write(queue, mem, 0, offset, size, at, n, wait, event) : marker(queue, n, wait, event);
}
