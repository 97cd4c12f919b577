//! The overlays of the example accelerator: which board's each is applied after, what a tree has
//! then, and what must not pass.

/// An overlay beside those of a board, whose own is applied first.
pub(crate) struct Example {
    pub(crate) board: &'static str,
    pub(crate) overlay: &'static str,
    /// The content of a tree then: node, property, value as dtc prints it.
    pub(crate) has: &'static [[&'static str; 3]],
    /// Of its engines, those whose master does not snoop: neither they nor what is above them may
    /// say that it does.
    pub(crate) not_coherent: &'static [&'static str],
}

pub(crate) const EXAMPLES: &[Example] = &[
    Example {
        board: "pynq-z2",
        overlay: "zynq-7000-gemm8",
        has: &[
            ["/axi/gemm8@40000000", "compatible", "\"contigo,engine\""],
            ["/axi/gemm8@40000000", "reg", "<0x40000000 0x1000>"],
            ["/axi/gemm8@40000000", "interrupts", "<0x0 0x1d 0x4>"],
        ],
        not_coherent: &["/axi/gemm8@40000000"],
    },
    Example {
        board: "pynq-z2",
        overlay: "zynq-7000-gemm8-acp",
        has: &[
            ["/axi/gemm8@40000000", "dma-coherent", ""],
            ["/axi/gemm8@40000000", "interrupts", "<0x0 0x1d 0x4>"],
            ["/udmabuf-acp", "dma-coherent", ""],
        ],
        not_coherent: &[],
    },
    Example {
        board: "de10-nano",
        overlay: "cyclone-v-gemm8",
        has: &[
            ["/soc/gemm8@ff200000", "reg", "<0xff200000 0x1000>"],
            ["/soc/gemm8@ff200000", "interrupts", "<0x0 0x28 0x4>"],
        ],
        not_coherent: &["/soc/gemm8@ff200000"],
    },
    Example {
        board: "de10-nano",
        overlay: "cyclone-v-gemm8-acp",
        has: &[
            ["/acp-bus", "dma-ranges", "<0x80000000 0x0 0x40000000>"],
            ["/acp-bus", "ranges", ""],
            ["/acp-bus", "dma-coherent", ""],
            ["/acp-bus", "compatible", "\"simple-bus\""],
            ["/acp-bus/gemm8@ff200000", "reg", "<0xff200000 0x1000>"],
            ["/acp-bus/gemm8@ff200000", "interrupts", "<0x0 0x28 0x4>"],
            ["/udmabuf-acp", "dma-coherent", ""],
        ],
        not_coherent: &[],
    },
    Example {
        board: "kv260",
        overlay: "zynqmp-gemm8",
        has: &[
            ["/axi/gemm8@a0000000", "reg", "<0x0 0xa0000000 0x0 0x1000>"],
            ["/axi/gemm8@a0000000", "interrupts", "<0x0 0x59 0x4>"],
        ],
        not_coherent: &["/axi/gemm8@a0000000"],
    },
    Example {
        board: "kv260",
        overlay: "zynqmp-gemm8-hpc0",
        has: &[
            ["/axi/gemm8@a0000000", "dma-coherent", ""],
            ["/axi/gemm8@a0000000", "interrupts", "<0x0 0x59 0x4>"],
            ["/udmabuf-hpc", "dma-coherent", ""],
        ],
        not_coherent: &[],
    },
];

/// A text in an overlay, the wrong text in its place, and the error: one of several, or nothing
/// where the fault is harmless.
type Fault = [&'static str; 3];

/// The example; the overlay that is broken, its own or its board's by the board's name; each fault.
pub(crate) const BROKEN: [(&str, &str, &[Fault]); 3] = [
    (
        "zynq-7000-gemm8",
        "zynq-7000-gemm8",
        &[
            ["&amba", "&no_such_label", "FDT_ERR"],
            ["interrupts = <0 29 4>;", "", "has no interrupts"],
            ["<0 29 4>;", "<0 29 4>, <0 30 4>;", "interrupts of /axi/gemm8@40000000"],
            ["interrupt-parent = <&intc>", "interrupt-parent = <&clkc>", "Warning"],
            ["contigo,engine", "contigo,engin", "compatible of /axi/gemm8@40000000"],
            ["@40000000 {", "@40001000 {", "Warning|there is no /axi/gemm8@40000000"],
            ["&amba {", "&{/} {", "there is no /axi/gemm8@40000000"],
            ["clocks = <&clkc 15>;", "clocks = <&no_such_clock 15>;", "FDT_ERR"],
            ["\"contigo,engine\";", "\"contigo,engine\"; dma-coherent;", "does not snoop"],
        ],
    ),
    (
        "zynq-7000-gemm8",
        "pynq-z2",
        &[
            ["engine\"", "engine\", \"arm,primecell\"", "compatible of /axi|primecell too"],
            ["<0 40 4>, <0 41 4>", "<0 40>, <0 41 4>", "Warning|cells of interrupts"],
            ["memory-region = <&contigo_pool>", "memory-region = <&intc>", "for its pool"],
            ["contigo_pool: contigo-pool {", "contigo_pool: contigo-pool { harmless;", ""],
            ["\t\tranges;\n", "", "has no ranges|Warning"],
            ["linux,cma-default;", "", "has no linux,cma-default"],
            ["name = \"udmabuf0\"", "name = \"udmabuf1\"", "is called otherwise"],
        ],
    ),
    (
        "cyclone-v-gemm8-acp",
        "cyclone-v-gemm8-acp",
        &[
            ["<0x80000000 0x00000000 ", "<0x00000000 0x00000000 ", "dma-ranges of /acp-bus"],
            ["\"simple-bus\";", "\"not-a-bus\";", "compatible of /acp-bus"],
            ["\t\tranges;\n", "", "Warning|has no ranges"],
            ["\t\tdma-coherent;\n", "", "has no dma-coherent"],
        ],
    ),
];
