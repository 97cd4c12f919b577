//! Which overlay goes onto which tree, what the tree has then, and what must not pass.

/// A tree, and what is applied to it, in this order.
pub(crate) struct Case {
    /// A file of the kernel's `arch/ARCH/boot/dts`, or a board of the lab.
    pub(crate) base: Base,
    /// Applied first: an overlay of the kernel's own.
    pub(crate) carrier: Option<&'static str>,
    pub(crate) overlays: &'static [&'static str],
}

#[derive(Clone, Copy)]
pub(crate) enum Base {
    Kernel {
        architecture: &'static str,
        tree: &'static str,
    },
    /// A folder of `cross/boards`, and the kernel source that its tree includes.
    Lab {
        board: &'static str,
        architecture: &'static str,
        series: &'static str,
    },
}

pub(crate) const ZC702: Base = Base::Kernel { architecture: "arm", tree: "zynq-zc702.dts" };
pub(crate) const DE0_NANO_SOC: Base = Base::Kernel { architecture: "arm", tree: "socfpga_cyclone5_de0_nano_soc.dts" };
pub(crate) const K26: Base = Base::Kernel { architecture: "arm64", tree: "zynqmp-sm-k26-revA.dts" };
pub(crate) const ZCU102: Base = Base::Kernel { architecture: "arm64", tree: "zynqmp-zcu102-rev1.0.dts" };
pub(crate) const KV260: Option<&str> = Some("zynqmp-sck-kv-g-revA");

/// PYNQ-Z2 and DE10-Nano have no tree in the kernel: these boards have the same SoC.
pub(crate) const CASES: &[Case] = &[
    Case { base: ZC702, carrier: None, overlays: &["pynq-z2", "zynq-7000-gemm8"] },
    Case { base: ZC702, carrier: None, overlays: &["pynq-z2", "zynq-7000-gemm8-acp"] },
    Case { base: DE0_NANO_SOC, carrier: None, overlays: &["de10-nano", "cyclone-v-gemm8"] },
    Case { base: DE0_NANO_SOC, carrier: None, overlays: &["de10-nano", "cyclone-v-gemm8-acp"] },
    Case { base: K26, carrier: KV260, overlays: &["kv260", "zynqmp-gemm8"] },
    Case { base: K26, carrier: KV260, overlays: &["kv260", "zynqmp-gemm8-hpc0"] },
    Case { base: ZCU102, carrier: None, overlays: &["kv260", "zynqmp-gemm8"] },
    Case { base: Base::Lab { board: "zynq-6.1", architecture: "arm", series: "6.1" }, carrier: None, overlays: &["lab-zynq"] },
    Case { base: Base::Lab { board: "zynq-6.12", architecture: "arm", series: "6.12" }, carrier: None, overlays: &["lab-zynq"] },
    Case { base: Base::Lab { board: "zynqmp", architecture: "arm64", series: "6.12" }, carrier: None, overlays: &["lab-zynqmp"] },
];

/// Node, property, value as dtc prints it.
type Promise = (&'static str, &'static str, &'static str);

/// What a tree has with an overlay. A `*` is a name that the kernel has changed over time.
pub(crate) const PROMISED: &[(&str, &[Promise])] = &[
    (
        "pynq-z2",
        &[
            ("/reserved-memory/linux,cma", "linux,cma-default", ""),
            ("/reserved-memory/linux,cma", "size", "<0x4000000>"),
            ("/reserved-memory/contigo-pool", "size", "<0x2000000>"),
            ("/udmabuf0", "size", "<0x1000000>"),
            ("/dma-port@f8003000", "reg", "<0xf8003000 0x1000>"),
            ("/axi/*@f8003000", "interrupts", "<0x0 0xe 0x4>"),
        ],
    ),
    ("zynq-7000-gemm8", &[("/dma-port@40000000", "reg", "<0x40000000 0x1000>"), ("/axi/gemm8@40000000", "interrupts", "<0x0 0x1d 0x4>")]),
    (
        "zynq-7000-gemm8-acp",
        &[
            ("/dma-port@40000000", "dma-coherent", ""),
            ("/axi/gemm8@40000000", "interrupts", "<0x0 0x1d 0x4>"),
            ("/udmabuf-acp", "dma-coherent", ""),
        ],
    ),
    (
        "de10-nano",
        &[
            ("/reserved-memory/linux,cma", "linux,cma-default", ""),
            ("/reserved-memory/linux,cma", "alloc-ranges", "<0x100000 0x1ff00000>"),
            ("/reserved-memory/contigo-pool", "size", "<0x2000000>"),
            ("/udmabuf0", "size", "<0x1000000>"),
            ("/dma-port@ffe01000", "reg", "<0xffe01000 0x1000>"),
            ("/soc/amba/pdma@ffe01000", "interrupts", "<0x0 0x68 0x4>"),
        ],
    ),
    ("cyclone-v-gemm8", &[("/dma-port@ff200000", "reg", "<0xff200000 0x1000>"), ("/soc/gemm8@ff200000", "interrupts", "<0x0 0x28 0x4>")]),
    (
        "cyclone-v-gemm8-acp",
        &[
            ("/acp-masters", "dma-ranges", "<0x80000000 0x0 0x40000000>"),
            ("/acp-masters", "ranges", ""),
            ("/acp-masters", "dma-coherent", ""),
            ("/acp-masters", "compatible", "\"simple-bus\""),
            ("/acp-masters/dma-port@ff200000", "reg", "<0xff200000 0x1000>"),
            ("/gemm8@ff200000", "interrupts", "<0x0 0x28 0x4>"),
            ("/udmabuf-acp", "dma-coherent", ""),
        ],
    ),
    (
        "kv260",
        &[
            ("/reserved-memory/linux,cma", "linux,cma-default", ""),
            ("/reserved-memory/linux,cma", "size", "<0x0 0x10000000>"),
            ("/reserved-memory/contigo-pool", "size", "<0x0 0x4000000>"),
            ("/udmabuf0", "size", "<0x2000000>"),
            ("/dma-port@fd500000", "reg", "<0x0 0xfd500000 0x0 0x1000>"),
            ("/dma-port@fd510000", "reg", "<0x0 0xfd510000 0x0 0x1000>"),
            ("/dma-port@ffa80000", "reg", "<0x0 0xffa80000 0x0 0x1000>"),
        ],
    ),
    (
        "zynqmp-gemm8",
        &[("/dma-port@a0000000", "reg", "<0x0 0xa0000000 0x0 0x1000>"), ("/axi/gemm8@a0000000", "interrupts", "<0x0 0x59 0x4>")],
    ),
    (
        "zynqmp-gemm8-hpc0",
        &[
            ("/dma-port@a0000000", "dma-coherent", ""),
            ("/axi/gemm8@a0000000", "interrupts", "<0x0 0x59 0x4>"),
            ("/udmabuf-hpc", "dma-coherent", ""),
        ],
    ),
    ("lab-zynq", &[("/udmabuf1", "size", "<0x800000>"), ("/dma-port@f8003000", "reg", "<0xf8003000 0x1000>")]),
    (
        "lab-zynqmp",
        &[
            ("/udmabuf1", "size", "<0x800000>"),
            ("/dma-port@fd500000", "reg", "<0x0 0xfd500000 0x0 0x1000>"),
            ("/dma-port@fd510000", "reg", "<0x0 0xfd510000 0x0 0x1000>"),
            ("/dma-port@ffa80000", "reg", "<0x0 0xffa80000 0x0 0x1000>"),
        ],
    ),
];

/// Of these, ports whose master does not snoop: nothing above them may say that it does.
pub(crate) const NOT_COHERENT: &[(&str, &str)] = &[
    ("pynq-z2", "/dma-port@f8003000"),
    ("zynq-7000-gemm8", "/dma-port@40000000"),
    ("de10-nano", "/dma-port@ffe01000"),
    ("cyclone-v-gemm8", "/dma-port@ff200000"),
    ("kv260", "/dma-port@fd500000"),
    ("zynqmp-gemm8", "/dma-port@a0000000"),
];

/// The case, the overlay, what is right in it, what is put there instead, what is then said (one of several): nothing where it is harmless.
pub(crate) const BROKEN: &[(usize, &str, &str, &str, &str)] = &[
    (0, "zynq-7000-gemm8", "&amba", "&no_such_label", "FDT_ERR"),
    (0, "zynq-7000-gemm8", "interrupts = <0 29 4>;", "", "has no interrupts"),
    (0, "zynq-7000-gemm8", "interrupts = <0 29 4>;", "interrupts = <0 29 4>, <0 30 4>;", "interrupts of /axi/gemm8@40000000"),
    (0, "zynq-7000-gemm8", "interrupt-parent = <&intc>", "interrupt-parent = <&clkc>", "Warning"),
    (0, "zynq-7000-gemm8", "generic-uio", "generic-uoi", "no generic-uio node"),
    (0, "zynq-7000-gemm8", "dma-port@40000000", "gemm8@40000000", "there is no /dma-port@40000000"),
    (0, "zynq-7000-gemm8", "dma-port@40000000 {", "dma-port@40001000 {", "there is no /dma-port@40000000"),
    (0, "zynq-7000-gemm8", "&{/} {", "&amba {", "Warning|there is no /dma-port@40000000"),
    (0, "zynq-7000-gemm8", "\"contigo,dma-port\";", "\"contigo,dma-port\"; dma-coherent;", "does not snoop"),
    (0, "pynq-z2", "memory-region = <&contigo_pool>", "memory-region = <&intc>", "for its pool"),
    (0, "pynq-z2", "contigo_pool: contigo-pool {", "contigo_pool: contigo-pool { harmless;", ""),
    (0, "pynq-z2", "\t\tranges;\n", "", "has no ranges|Warning"),
    (0, "pynq-z2", "linux,cma-default;", "", "has no linux,cma-default"),
    (0, "pynq-z2", "device-name = \"udmabuf0\"", "device-name = \"udmabuf1\"", "is called otherwise"),
    (3, "cyclone-v-gemm8-acp", "<0x80000000 0x00000000 0x40000000>", "<0x00000000 0x00000000 0x40000000>", "dma-ranges of /acp-masters"),
    (3, "cyclone-v-gemm8-acp", "compatible = \"simple-bus\";", "compatible = \"not-a-bus\";", "compatible of /acp-masters"),
    (3, "cyclone-v-gemm8-acp", "\t\tranges;\n", "", "Warning|has no ranges"),
    (3, "cyclone-v-gemm8-acp", "\t\tdma-coherent;\n", "", "has no dma-coherent"),
];
