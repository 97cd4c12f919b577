/* A driver with one thing wrong, before the machine's own. CONTIGO_BROKEN says which:
 *   old      it says that it is OpenCL 1.0
 *   lost     each kernel ends with CL_OUT_OF_RESOURCES, as where a device is lost
 *   copies   a mapping is somewhere else than the host's bytes
 *   refuses  it maps nothing: CL_MAP_FAILURE
 *   stuck    what is written is written, and its event never ends
 *   retains  a kernel keeps the object of an argument until it gets another one
 *   keeps    it never says that a block's bytes can be freed
 *   align    sub-buffers begin at multiples of 12 bytes, which cannot be
 * These are about a job's operand, of 4096 bytes. The first look of a region is well.
 *   late     the end of its write is reported 15 s later
 *   never    the end of its write is never reported, and a write of 2048 bytes is refused
 *   second   a write of 2048 bytes is refused
 *   failed   its write ends with an error
 *   flush    behind its write the queue is not flushed any more
 *   unread   the end of its first mapping is reported 15 s later
 *   mapped   it is not unmapped
 *   argument a kernel's second argument is refused, and the first one's object kept as in `retains`
 *   forked   the process ends with 77 where a child of fork calls the driver */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void *H;

static void *real(const char *name) {
    static void *loader;
    if (!loader) loader = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    void *found = loader ? dlsym(loader, name) : NULL;
    if (!found) abort();
    return found;
}

static int is(const char *what) {
    const char *broken = getenv("CONTIGO_BROKEN");
    return broken && strcmp(broken, what) == 0;
}

static pid_t opener;
__attribute__((constructor)) static void opens(void) { opener = getpid(); }

static void not_in_a_child(void) {
    if (is("forked") && getpid() != opener) _exit(77);
}

/* An event in this queue's context that a program completes by itself. */
static H user_event(H queue) {
    int32_t (*info)(H, uint32_t, size_t, void *, size_t *) = real("clGetCommandQueueInfo"), error;
    H (*create)(H, int32_t *) = real("clCreateUserEvent");
    H context = NULL;
    if (info(queue, 0x1090, sizeof context, &context, NULL)) abort();
    H event = create(context, &error);
    if (error) abort();
    return event;
}

static void *in_15_s(void *event) {
    int32_t (*set)(H, int32_t) = real("clSetUserEventStatus");
    sleep(15);
    if (set(event, 0)) abort();
    return NULL;
}

/* In the place of a command's event: one that ends 15 s later; or never, or with an error. */
static void instead(H queue, H *event, int32_t status, int told) {
    int32_t (*release)(H) = real("clReleaseEvent"), (*retain)(H) = real("clRetainEvent");
    int32_t (*set)(H, int32_t) = real("clSetUserEventStatus");
    pthread_t thread;
    release(*event), *event = user_event(queue), retain(*event);
    if (status) set(*event, status);
    else if (told && pthread_create(&thread, NULL, in_15_s, *event)) abort();
}

int32_t clGetDeviceInfo(H device, uint32_t what, size_t size, void *to, size_t *needs) {
    int32_t (*ask)(H, uint32_t, size_t, void *, size_t *) = real("clGetDeviceInfo");
    int32_t answer = ask(device, what, size, to, needs);
    if (answer == 0 && to && what == 0x102F && is("old")) memcpy(to, "OpenCL 1.0 ", 11);
    if (answer == 0 && to && what == 0x1019 && is("align")) *(uint32_t *)to = 96;
    return answer;
}

int32_t clEnqueueNDRangeKernel(H queue, H kernel, uint32_t sides, const size_t *from, const size_t *global, const size_t *local, uint32_t n,
                               const H *wait, H *event) {
    int32_t (*launch)(H, H, uint32_t, const size_t *, const size_t *, const size_t *, uint32_t, const H *, H *) =
        real("clEnqueueNDRangeKernel");
    if (!is("lost")) return launch(queue, kernel, sides, from, global, local, n, wait, event);
    int32_t (*set)(H, int32_t) = real("clSetUserEventStatus");
    *event = user_event(queue);
    return set(*event, -5);
}

static int must_stay, unflushed;

int32_t clEnqueueUnmapMemObject(H queue, H mem, void *at, uint32_t n, const H *wait, H *event) {
    int32_t (*unmap)(H, H, void *, uint32_t, const H *, H *) = real("clEnqueueUnmapMemObject");
    not_in_a_child();
    return must_stay ? -5 : unmap(queue, mem, at, n, wait, event);
}

int32_t clFlush(H queue) {
    int32_t (*flush)(H) = real("clFlush");
    not_in_a_child();
    return unflushed ? -36 : flush(queue);
}

void *clEnqueueMapBuffer(H queue, H mem, uint32_t blocking, uint64_t flags, size_t offset, size_t size, uint32_t n, const H *wait, H *event,
                         int32_t *error) {
    void *(*map)(H, H, uint32_t, uint64_t, size_t, size_t, uint32_t, const H *, H *, int32_t *) = real("clEnqueueMapBuffer");
    static int count;
    not_in_a_child();
    if (is("refuses")) return *error = -12, NULL;
    char *at = map(queue, mem, blocking, flags, offset, size, n, wait, event, error);
    if (is("unread") && size == 4096 && count++ == 0) instead(queue, event, 0, 1);
    must_stay = is("mapped") && size == 4096;
    return is("copies") ? at + 64 : at;
}

int32_t clEnqueueWriteBuffer(H queue, H mem, uint32_t blocking, size_t offset, size_t size, const void *from, uint32_t n, const H *wait,
                             H *event) {
    int32_t (*write)(H, H, uint32_t, size_t, size_t, const void *, uint32_t, const H *, H *) = real("clEnqueueWriteBuffer");
    if (size == 2048 && (is("second") || is("never") || is("failed first"))) return -5;
    int32_t answer = write(queue, mem, blocking, offset, size, from, n, wait, event);
    if (is("stuck") || (size == 4096 && is("never"))) instead(queue, event, 0, 0);
    if (size == 4096 && is("late")) instead(queue, event, 0, 1);
    if (size == 4096 && (is("failed") || is("failed first"))) instead(queue, event, -5, 1);
    if (size == 4096 && is("flush")) unflushed = 1;
    return answer;
}

/* The end of a block is reported half a second late, by another thread. */
struct slow { void (*notify)(H, void *); void *with; H mem; };

static void *tell_slowly(void *what) {
    struct slow *slow = what;
    usleep(500 * 1000);
    slow->notify(slow->mem, slow->with);
    free(slow);
    return NULL;
}

static void begin_slowly(H mem, void *what) {
    pthread_t thread;
    (void)mem;
    if (pthread_create(&thread, NULL, tell_slowly, what) || pthread_detach(thread)) abort();
}

int32_t clSetMemObjectDestructorCallback(H mem, void (*notify)(H, void *), void *with) {
    int32_t (*set)(H, void (*)(H, void *), void *) = real("clSetMemObjectDestructorCallback");
    not_in_a_child();
    if (is("keeps")) return 0;
    if (!is("slow")) return set(mem, notify, with);
    struct slow *slow = malloc(sizeof *slow);
    if (!slow) abort();
    *slow = (struct slow){notify, with, mem};
    return set(mem, begin_slowly, slow);
}

/* One kernel with one operand, which is its first argument: the test's. */
int32_t clSetKernelArg(H kernel, uint32_t index, size_t size, const void *value) {
    int32_t (*set)(H, uint32_t, size_t, const void *) = real("clSetKernelArg");
    int32_t (*retain)(H) = real("clRetainMemObject"), (*release)(H) = real("clReleaseMemObject");
    static H kept;
    not_in_a_child();
    if (index == 1 && is("argument") && *(const H *)value) return -5;
    int32_t answer = set(kernel, index, size, value);
    if (answer == 0 && index == 0 && size == sizeof(H) && (is("retains") || is("argument"))) {
        H next = *(const H *)value;
        if (next) retain(next);
        if (kept) release(kept);
        kept = next;
    }
    return answer;
}

#define ONE(name, type)                                                                                                                     \
    int32_t name(type of) {                                                                                                                 \
        int32_t (*call)(type) = real(#name);                                                                                                \
        not_in_a_child();                                                                                                                   \
        return call(of);                                                                                                                    \
    }
ONE(clReleaseEvent, H)
ONE(clRetainEvent, H)
ONE(clReleaseKernel, H)
ONE(clReleaseCommandQueue, H)
ONE(clReleaseMemObject, H)
ONE(clReleaseProgram, H)

int32_t clGetEventInfo(H event, uint32_t what, size_t size, void *to, size_t *needs) {
    int32_t (*ask)(H, uint32_t, size_t, void *, size_t *) = real("clGetEventInfo");
    not_in_a_child();
    return ask(event, what, size, to, needs);
}
