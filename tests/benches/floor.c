/* The floor of packets.rs: AXI DMA's receive channel with scatter-gather, as a careful engineer
 * writes it by hand. It checks what the core reports, and nothing that its caller does: who owns a
 * buffer, and whether the channel can reach it, is the caller's business. AMD PG021. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define DESCRIPTORS 128u
#define IN_FLIGHT_MAX 64u
#define PACKET 1024u
#define BURST 8u
#define BASE (1u << 28)

#define DMACR_RUN (1u << 0)
#define DONE (1u << 31)
#define ERRORS (7u << 28)
#define FIRST (1u << 27)
#define LAST (1u << 26)
#define LENGTH 0x03ffffffu

/* A channel's registers. */
struct registers {
    uint32_t control, status, current, current_high, tail, tail_high;
};

struct descriptor {
    _Alignas(64) uint32_t next;
    uint32_t next_high, buffer, buffer_high, reserved[2], control, status, app[5];
};

struct packet {
    uint8_t *bytes;
    uint32_t len;
};

struct ring {
    volatile struct registers *registers;
    volatile struct descriptor *descriptors;
    uint8_t *buffers[DESCRIPTORS];
    unsigned first, next, last;
};

/* All memory that the channel sees, from bus address BASE on: descriptors, then buffers. */
static uint8_t *memory;
static struct registers registers;
static bool twice;

static uint32_t bus(const volatile void *at)
{
    return BASE + (uint32_t)((const volatile uint8_t *)at - memory);
}

/* The hardware, as in packets.rs: every descriptor up to the tail is done. */
__attribute__((noinline)) static void arrive(uint32_t tail)
{
    uint32_t at = registers.current;
    for (unsigned n = 0; n < DESCRIPTORS; n++) {
        volatile struct descriptor *descriptor =
            (volatile struct descriptor *)(memory + (at - BASE));
        descriptor->status = DONE | FIRST | LAST | PACKET;
        uint32_t next = descriptor->next;
        if (at == tail)
            break;
        at = next;
    }
    registers.current = at;
}

static void ring_start(struct ring *ring)
{
    ring->registers = &registers;
    ring->descriptors = (volatile struct descriptor *)memory;
    for (unsigned n = 0; n < DESCRIPTORS; n++)
        ring->descriptors[n].next = bus(&ring->descriptors[(n + 1) % DESCRIPTORS]);
    ring->registers->current = bus(ring->descriptors);
    ring->registers->control = DMACR_RUN;
}

/* Gives the channel a buffer, which it does not see before the doorbell. */
static void ring_give(struct ring *ring, uint8_t *bytes)
{
    volatile struct descriptor *descriptor = &ring->descriptors[ring->next];
    descriptor->buffer = bus(bytes);
    descriptor->control = PACKET;
    descriptor->status = 0;
    ring->buffers[ring->next] = bytes;
    ring->last = ring->next;
    ring->next = (ring->next + 1) % DESCRIPTORS;
}

static void ring_doorbell(struct ring *ring)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    uint32_t from = ring->registers->current, tail = bus(&ring->descriptors[ring->last]);
    ring->registers->tail = tail;
    arrive(tail);
    if (twice) {
        *(volatile uint32_t *)&registers.current = from;
        arrive(tail);
    }
}

/* Returns 1 with the oldest packet, 0 if it has not come, or -1 if the channel has failed. */
static int ring_poll(struct ring *ring, struct packet *packet)
{
    uint32_t status = ring->descriptors[ring->first].status;
    if (status & ERRORS)
        return -1;
    if (!(status & DONE))
        return 0;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    packet->bytes = ring->buffers[ring->first];
    packet->len = status & LENGTH;
    ring->first = (ring->first + 1) % DESCRIPTORS;
    return 1;
}

/* in flight, packets, bursts, twice: numbers. */
int main(int count, char **args)
{
    if (count != 5)
        return 2;
    unsigned in_flight = (unsigned)atoi(args[1]), packets = (unsigned)atoi(args[2]);
    unsigned burst = atoi(args[3]) ? BURST : 1;
    twice = atoi(args[4]);
    size_t buffers = DESCRIPTORS * sizeof(struct descriptor);
    memory = aligned_alloc(4096, buffers + IN_FLIGHT_MAX * PACKET);
    if (!memory || in_flight > IN_FLIGHT_MAX)
        return 1;
    memset(memory, 0, buffers);
    struct ring ring = {0};
    ring_start(&ring);
    for (unsigned n = 0; n < in_flight; n++) {
        ring_give(&ring, memory + buffers + n * PACKET);
        ring_doorbell(&ring);
    }
    for (unsigned n = 0; n < packets; n += burst) {
        struct packet got[BURST];
        for (unsigned at = 0; at < burst; at++)
            if (ring_poll(&ring, &got[at]) != 1 || got[at].len != PACKET)
                return 1;
        for (unsigned at = 0; at < burst; at++)
            ring_give(&ring, got[at].bytes);
        ring_doorbell(&ring);
    }
    return 0;
}
