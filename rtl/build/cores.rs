//! The list of cores. A change here compiles the cores that it concerns, and no others.

/// A core: a folder of `cores/` whose `top.v` has the module `top`, with the ports of README.md.
pub(crate) struct Core {
    pub(crate) name: &'static str,
    /// Its sources, from this folder. One that ends in `vh` is included by others.
    pub(crate) files: &'static [&'static str],
    /// The parameters of `top`.
    pub(crate) parameters: &'static [&'static str],
    /// A tool wrote it: no lint.
    pub(crate) foreign: bool,
    /// The program that makes sources which are not there.
    pub(crate) made_by: &'static str,
}

const OWN: Core = Core { name: "", files: &[], parameters: &[], foreign: false, made_by: "" };

const GEMM8: &[&str] = &[
    "cores/gemm8/top.v",
    "../examples/gemm8/rtl/gemm8.v",
    "../examples/gemm8/rtl/gemm8_array.v",
    "../examples/gemm8/rtl/gemm8_bursts.v",
    "../examples/gemm8/rtl/gemm8_control.v",
    "../examples/gemm8/rtl/gemm8_drain.v",
    "../examples/gemm8/rtl/gemm8_feed.v",
    "../examples/gemm8/rtl/gemm8_job.v",
    "../examples/gemm8/rtl/gemm8_read.v",
    "../examples/gemm8/rtl/gemm8_regs.vh",
    "../examples/gemm8/rtl/gemm8_requantize.v",
    "../examples/gemm8/rtl/gemm8_row.v",
    "../examples/gemm8/rtl/gemm8_times.v",
    "../examples/gemm8/rtl/gemm8_walk.v",
    "../examples/gemm8/rtl/gemm8_write.v",
    "gate/axi_gate.v",
    "gate/axi_gate_owed.v",
    "gate/axi_gate_registers.v",
];

const GATE: &[&str] =
    &["cores/gated/top.v", "gate/axi_gate.v", "gate/axi_gate_owed.v", "gate/axi_gate_registers.v"];

const MADE: Core = Core { foreign: true, made_by: "rtl/cores/get", ..OWN };

const NNGEN: Core = Core {
    files: &[
        "cores/nngen/top.v",
        "cores/nngen/made/mlp.v",
        "gate/axi_gate.v",
        "gate/axi_gate_owed.v",
        "gate/axi_gate_registers.v",
    ],
    ..MADE
};

const LITEX: Core = Core {
    files: &[
        "cores/litex/top.v",
        "cores/litex/made/dma.v",
        "gate/axi_gate.v",
        "gate/axi_gate_owed.v",
        "gate/axi_gate_registers.v",
    ],
    ..MADE
};

pub(crate) const CORES: &[Core] = &[
    Core { name: "scratch", files: &["cores/scratch/top.v"], ..OWN },
    Core { name: "broken32", files: &["cores/broken/top.v"], parameters: &["DATA_BITS=32"], ..OWN },
    Core {
        name: "broken512",
        files: &["cores/broken/top.v"],
        parameters: &["DATA_BITS=512"],
        ..OWN
    },
    Core { name: "gated", files: GATE, parameters: &["GATED=1"], ..OWN },
    Core { name: "ungated", files: GATE, parameters: &["GATED=0"], ..OWN },
    Core { name: "gemm8", files: GEMM8, parameters: &["GATED=0"], ..OWN },
    Core { name: "gemm8_gated", files: GEMM8, parameters: &["GATED=1"], ..OWN },
    Core { name: "litex", parameters: &["GATED=0"], ..LITEX },
    Core { name: "litex_gated", parameters: &["GATED=1"], ..LITEX },
    Core { name: "nngen", parameters: &["GATED=0"], ..NNGEN },
    Core { name: "nngen_gated", parameters: &["GATED=1"], ..NNGEN },
    Core { name: "passes", files: &["cores/passes/top.v"], ..OWN },
    Core { name: "split", files: &["cores/split/top.v"], ..OWN },
    Core {
        name: "s2mm",
        files: &["cores/s2mm/top.v", "cores/s2mm/s2mm_intake.v", "cores/s2mm/s2mm_writer.v"],
        parameters: &["FAULTS=1"],
        ..OWN
    },
];
