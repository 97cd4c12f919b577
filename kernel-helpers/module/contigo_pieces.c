// SPDX-License-Identifier: GPL-2.0
/*
 * Where the parts of a mapped dma-buf are. No device is needed for this.
 */
#include <linux/overflow.h>

#include "contigo_calls.h"

/* Is a range not empty, and within what is @whole_bytes long? */
bool contigo_is_within(u64 offset_bytes, u64 len_bytes, u64 whole_bytes)
{
	u64 end;

	return len_bytes && !check_add_overflow(offset_bytes, len_bytes, &end) &&
	       end <= whole_bytes;
}

/* The piece that holds @offset_bytes, which is within the buffer. */
const struct contigo_piece *contigo_piece_at(const struct contigo_mapping *mapping,
					     u64 offset_bytes)
{
	u32 low = 0, high = mapping->pieces - 1;

	while (low < high) {
		u32 middle = low + (high - low + 1) / 2;

		if (mapping->piece[middle].offset_bytes <= offset_bytes)
			low = middle;
		else
			high = middle - 1;
	}
	return &mapping->piece[low];
}

/**
 * contigo_pieces_runs - list runs of bus addresses
 * @mapping: the buffer
 * @offset_bytes: where in it the first run begins that is asked for
 * @segment: room for @room of them; each is as long as it can be
 * @room: how many fit
 *
 * Return: how many were written; 0 where @offset_bytes is past the end.
 */
u32 contigo_pieces_runs(const struct contigo_mapping *mapping, u64 offset_bytes,
			struct contigo_segment *segment, u32 room)
{
	const struct contigo_piece *end = mapping->piece + mapping->pieces;
	const struct contigo_piece *piece;
	u32 count = 0;
	u64 next = 0;

	if (offset_bytes >= mapping->len_bytes || !room)
		return 0;
	for (piece = contigo_piece_at(mapping, offset_bytes); piece < end; piece++) {
		u64 within = count ? 0 : offset_bytes - piece->offset_bytes;
		u64 addr = (u64)piece->addr + within;
		u64 len_bytes = piece->len_bytes - within;

		if (count && addr == next) {
			segment[count - 1].len_bytes += len_bytes;
		} else {
			if (count == room)
				break;
			segment[count].addr = addr;
			segment[count].len_bytes = len_bytes;
			count++;
		}
		next = addr + len_bytes;
	}
	return count;
}
