/* A driver that is compiled with -Dcontigo_buf_give=NAME calls one of these, which do less than the
 * driver owes. */

#include <contigo.h>

contigo_status give_half(contigo_buf buf, contigo_port port, size_t offset_bytes, size_t len_bytes, contigo_use use, uint64_t *addr);
contigo_status give_a_line(contigo_buf buf, contigo_port port, size_t offset_bytes, size_t len_bytes, contigo_use use, uint64_t *addr);
contigo_status give_to_read(contigo_buf buf, contigo_port port, size_t offset_bytes, size_t len_bytes, contigo_use use, uint64_t *addr);

/* Too short a range. */
contigo_status give_half(contigo_buf buf, contigo_port port, size_t offset_bytes, size_t len_bytes, contigo_use use, uint64_t *addr)
{
    return contigo_buf_give(buf, port, offset_bytes, len_bytes / 2, use, addr);
}

/* No flush: of all that the CPU wrote, the first byte's line alone. */
contigo_status give_a_line(contigo_buf buf, contigo_port port, size_t offset_bytes, size_t len_bytes, contigo_use use, uint64_t *addr)
{
    (void)len_bytes;
    return contigo_buf_give(buf, port, offset_bytes, 1, use, addr);
}

/* No invalidation of what the device wrote. */
contigo_status give_to_read(contigo_buf buf, contigo_port port, size_t offset_bytes, size_t len_bytes, contigo_use use, uint64_t *addr)
{
    (void)use;
    return contigo_buf_give(buf, port, offset_bytes, len_bytes, CONTIGO_READS, addr);
}
