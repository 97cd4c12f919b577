/* The kernel FIR, for contigo_engine_options.map and contigo_kernel_open. */

static const char FIR_MAP[] =
    "{\"name\":\"FIR\",\"protocol\":\"ap_ctrl_hs\",\"window\":52,\"interrupt\":true,"
    "\"pointers\":["
    "    {\"name\":\"x\",\"offset\":24,\"bits\":64,\"direction\":\"in\",\"align\":64,\"min\":1,\"bytes\":\"4*n\"},"
    "    {\"name\":\"y\",\"offset\":36,\"bits\":64,\"direction\":\"out\",\"align\":64,\"min\":1,\"bytes\":\"4*n\"}],"
    "\"scalars\":["
    "    {\"name\":\"n\",\"offset\":48,\"bits\":32}],"
    "\"results\":["
    "    {\"name\":\"ap_return\",\"offset\":16,\"bits\":32}]}";

/* The operands of a job. */
enum { FIR_X = 0, FIR_Y = 1 };

/* The argument words of a job, the low one first. */
enum { FIR_N = 0 };
