/* The examples share this: an error ends the program with the call that failed, and why. */

#ifndef CHECK_H
#define CHECK_H

#include <contigo.h>
#include <stdio.h>
#include <stdlib.h>

/* The outcome of a call, in words. */
static inline void say(FILE *to, const char *what, contigo_status status)
{
    char text[1024];
    contigo_last_error(text, sizeof text);
    fprintf(to, "%s: %s: %s\n", what, contigo_status_name(status), text);
}

static inline void check(contigo_status status, const char *what)
{
    if (status != CONTIGO_OK) {
        say(stderr, what, status);
        exit(EXIT_FAILURE);
    }
}
#define CHECK(call) check((call), #call)

/* A buffer's bytes. A device cannot have them before contigo_buf_unmap. */
static inline void *map(contigo_buf buf, uint32_t access)
{
    void *bytes = NULL;
    CHECK(contigo_buf_map(buf, access, &bytes, NULL));
    return bytes;
}

#endif
