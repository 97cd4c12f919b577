/*
 * Every large allocation and every large copy of a process, in all of its code: a library for
 * LD_PRELOAD. It stands before the C library's functions that allocate and copy, counts calls of at
 * least as many bytes as copies_begin was told, and hands each on. copies.py builds it and asks.
 *
 * A loop of a framework's own that moves bytes is no call, and is not seen: the frameworks'
 * profilers are asked beside it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

struct counts {
	uint64_t allocations, allocated_bytes, copies, copied_bytes;
};

static _Atomic size_t at_least = SIZE_MAX; /* SIZE_MAX: nothing is counted */
static _Atomic uint64_t allocations, allocated_bytes, copies, copied_bytes;

void copies_begin(size_t bytes)
{
	allocations = allocated_bytes = copies = copied_bytes = 0;
	at_least = bytes;
}

void copies_end(struct counts *into)
{
	at_least = SIZE_MAX;
	*into = (struct counts){ allocations, allocated_bytes, copies, copied_bytes };
}

static void allocated(size_t bytes)
{
	if (bytes >= at_least) {
		allocations++;
		allocated_bytes += bytes;
	}
}

static void copied(size_t bytes)
{
	if (bytes >= at_least) {
		copies++;
		copied_bytes += bytes;
	}
}

/* The C library's function of the same name. */
#define NEXT(name) \
	static __typeof__(&name) next; \
	if (!next) \
		next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

/* Before the C library's is found, and while it is looked for: byte by byte. */
static void *by_bytes(void *to, const void *from, size_t bytes)
{
	volatile unsigned char *t = to;
	const unsigned char *f = from;
	if ((uintptr_t)t <= (uintptr_t)f)
		for (size_t i = 0; i < bytes; i++)
			t[i] = f[i];
	else
		for (size_t i = bytes; i > 0; i--)
			t[i - 1] = f[i - 1];
	return to;
}

static void *(*next_memcpy)(void *, const void *, size_t);
static void *(*next_memmove)(void *, const void *, size_t);

__attribute__((constructor)) static void find(void)
{
	next_memmove = (void *(*)(void *, const void *, size_t))dlsym(RTLD_NEXT, "memmove");
	next_memcpy = (void *(*)(void *, const void *, size_t))dlsym(RTLD_NEXT, "memcpy");
}

void *memcpy(void *restrict to, const void *restrict from, size_t bytes)
{
	copied(bytes);
	return (next_memcpy ? next_memcpy : by_bytes)(to, from, bytes);
}

void *memmove(void *to, const void *from, size_t bytes)
{
	copied(bytes);
	return (next_memmove ? next_memmove : by_bytes)(to, from, bytes);
}

void *__memcpy_chk(void *to, const void *from, size_t bytes, size_t room)
{
	if (bytes > room)
		__builtin_trap();
	return memcpy(to, from, bytes);
}

void *__memmove_chk(void *to, const void *from, size_t bytes, size_t room)
{
	if (bytes > room)
		__builtin_trap();
	return memmove(to, from, bytes);
}

/* glibc's own names for these: dlsym may allocate, and must not come back here. */
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

void *malloc(size_t bytes)
{
	allocated(bytes);
	return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
	size_t all;
	allocated(__builtin_mul_overflow(count, bytes, &all) ? 0 : all);
	return __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes)
{
	allocated(bytes);
	return __libc_realloc(old, bytes);
}

void *memalign(size_t align, size_t bytes)
{
	allocated(bytes);
	return __libc_memalign(align, bytes);
}

void *aligned_alloc(size_t align, size_t bytes)
{
	return memalign(align, bytes);
}

int posix_memalign(void **into, size_t align, size_t bytes)
{
	void *found;
	if (align < sizeof(void *) || align & (align - 1))
		return EINVAL;
	found = memalign(align, bytes);
	if (!found)
		return ENOMEM;
	*into = found;
	return 0;
}

void *mmap(void *at, size_t bytes, int rights, int flags, int file, off_t offset)
{
	NEXT(mmap);
	if (flags & MAP_ANONYMOUS)
		allocated(bytes);
	return next(at, bytes, rights, flags, file, offset);
}

/* Its name in programs for files of more than 2 GiB. */
void *mmap64(void *, size_t, int, int, int, off_t) __attribute__((alias("mmap")));
