//! The source of a device-tree overlay: one node for the kernel module contigo for each core
//! (kernel-helpers/bindings/contigo,engine.yaml).

use super::Options;
use super::report::Report;
use contigo::design::{
    Core, Design, DesignError, DesignRule, Soc, Trigger, Wired, parameter_number,
};
use std::fmt::Write as _;

/// The source, and the notes for its reader.
pub(super) struct Written {
    pub(super) text: String,
    pub(super) notes: Vec<String>,
}

/// The parts of a kernel's tree that a node refers to: arch/arm/boot/dts/xilinx/zynq-7000.dtsi,
/// arch/arm64/boot/dts/xilinx/zynqmp.dtsi.
struct Tree {
    soc: Soc,
    cells: usize,
    interrupts: &'static str,
    clocks: &'static str,
}

/// Sentences about a core that become a comment instead of a property.
type Notes = Vec<String>;

/// The overlay's source for the cores of `report`.
pub(super) fn source(
    design: &Design<'_>,
    report: &Report<'_>,
    options: &Options,
) -> Result<Written, String> {
    let tree = Tree::of(design.soc)?;
    let (mut nodes, mut notes) = (String::new(), Vec::new());
    for entry in &report.cores {
        let core = design.core(entry.name).map_err(said)?;
        let mut own = Notes::new();
        let node = if core.ip() == "axi_intc" && options.at_boot {
            tree.controller(&core, &mut own)
        } else if core.ip() == "axi_intc" {
            continue;
        } else {
            tree.node(design, &core, options, &mut own)
        };
        let node = node.map_err(said)?;
        for note in &own {
            nodes.push_str(&comment(core.name(), note));
        }
        notes.extend(own.into_iter().map(|note| format!("{}: {note}", core.name())));
        nodes.push_str(&node);
    }
    let mut text = String::new();
    let when = if options.at_boot {
        "At boot, after the bitstream"
    } else {
        "With the bitstream, or at boot after it"
    };
    let _ = write!(
        text,
        "// Written by contigo overlay, from the design {} for {}.\n/dts-v1/;\n/plugin/;\n\n\
         /*\n * {when}: an access to a core that is not there hangs the\n * processor. Compile it \
         with dtc -@ -W no-avoid_unnecessary_addr_size -I dts -O dtb. A program\n * opens \
         contigo:NAME@ADDRESS.\n */\n&amba {{\n\t#address-cells = <{}>;\n\t#size-cells = <{}>;\n\
         {nodes}\n}};\n",
        report.name, report.device, tree.cells, tree.cells
    );
    Ok(Written { text: text.replace("\n\n}", "\n}"), notes })
}

/// A comment, broken into lines that are not too long.
fn comment(name: &str, note: &str) -> String {
    let (mut text, mut column) = (format!("\n\t/*\n\t * {name}:"), name.len());
    for word in note.split(' ') {
        if column + word.len() > 80 {
            text.push_str("\n\t *");
            column = 0;
        }
        let _ = write!(text, " {word}");
        column += word.len() + 1;
    }
    text + ".\n\t */"
}

fn said(error: DesignError) -> String {
    error.to_string()
}

impl Tree {
    fn of(soc: Soc) -> Result<Self, String> {
        match soc {
            Soc::Zynq7000 => Ok(Self { soc, cells: 1, interrupts: "intc", clocks: "clkc" }),
            Soc::ZynqMp => Ok(Self { soc, cells: 2, interrupts: "gic", clocks: "zynqmp_clk" }),
            _ => {
                Err("no device tree for a design without Zynq-7000 or Zynq UltraScale+".to_owned())
            }
        }
    }

    /// The node of a core, or nothing if the core can have none.
    fn node(
        &self,
        design: &Design<'_>,
        core: &Core<'_, '_>,
        options: &Options,
        notes: &mut Notes,
    ) -> Result<String, DesignError> {
        let named =
            |names: &[String]| names.iter().any(|name| name == core.name() || name == core.path());
        let Some(registers) = self.registers(core)? else {
            notes.push("the processor sees no registers of it, so it has no node".to_owned());
            return Ok(String::new());
        };
        let coherent = match core.port() {
            _ if named(&options.coherent) => true,
            _ if named(&options.not_coherent) => false,
            Ok(port) => port.coherent,
            Err(error) if error.rule == DesignRule::NoPort => false,
            Err(error) if error.rule == DesignRule::Unsure => {
                let (yes, no) = (
                    format!("--coherent {}", core.name()),
                    format!("--not-coherent {}", core.name()),
                );
                notes.push(format!(
                    "the file does not tell whether its port snoops for it, so it \
                    has no node: {yes}, or {no}"
                ));
                return Ok(String::new());
            }
            Err(error) if error.rule == DesignRule::MixedPorts => {
                notes.push(
                    "a port of it snoops and another does not, and a node says one of both: \
                            it has no node"
                        .to_owned(),
                );
                return Ok(String::new());
            }
            Err(error) => return Err(error),
        };
        let mut node = format!(
            "\n\t{} {{\n\t\tcompatible = \"contigo,engine\";\n{registers}",
            self.title(core)?
        );
        self.interrupts(design, core, options.at_boot, notes, &mut node)?;
        self.clocks(core, notes, &mut node);
        if coherent {
            if self.soc == Soc::ZynqMp {
                notes.push(
                    "its port snoops where the firmware has set Enable_snoops of the CCI (UG1085)"
                        .to_owned(),
                );
            }
            node.push_str("\t\tdma-coherent;\n");
        }
        // A design tool's AXI4-Lite slave answers at each address of its range.
        node.push_str("\t\tcontigo,stop-windows = <0>;\n\t};\n");
        Ok(node)
    }

    /// The node of an AXI interrupt controller (Linux `drivers/irqchip/irq-xilinx-intc.c`).
    fn controller(&self, core: &Core<'_, '_>, notes: &mut Notes) -> Result<String, DesignError> {
        let line = match core.controller_goes()? {
            Wired::Processor { line } => self.soc.shared_interrupt(line),
            _ => None,
        };
        let (Some(registers), Some(line)) = (self.registers(core)?, line) else {
            notes.push(
                "it does not reach the processor's interrupts, or has no registers, so it \
                        has no node"
                    .to_owned(),
            );
            return Ok(String::new());
        };
        let number = |name| Some(parameter_number(core.parameter(name)?)? & 0xFFFF_FFFF);
        let (Some(inputs), Some(kinds)) = (number("C_NUM_INTR_INPUTS"), number("C_KIND_OF_INTR"))
        else {
            notes.push(
                "C_NUM_INTR_INPUTS or C_KIND_OF_INTR is missing or no number, so it has no node"
                    .to_owned(),
            );
            return Ok(String::new());
        };
        let inputs = inputs.clamp(1, 32);
        // Vivado describes the inputs that the controller lacks as edges.
        let kinds = kinds & ((1 << inputs) - 1);
        let mut node = format!(
            "\n\t{}: {} {{\n\t\tcompatible = \"xlnx,xps-intc-1.00.a\";\n\
             {registers}\t\tinterrupt-controller;\n\t\t#address-cells = <0>;\n\
             \t\t#interrupt-cells = <2>;\n\t\txlnx,kind-of-intr = <{kinds:#x}>;\n\
             \t\txlnx,num-intr-inputs = <{inputs:#x}>;\n\t\tinterrupt-parent = <&{}>;\n\
             \t\tinterrupts = <0 {line} 4>;\n",
            contigo::names::node_of(core),
            self.title(core)?.replacen(
                contigo::names::node_of(core).as_str(),
                "interrupt-controller",
                1
            ),
            self.interrupts
        );
        self.clocks(core, notes, &mut node);
        node.push_str("\t};\n");
        Ok(node)
    }

    /// `axi_dma_0@40400000`.
    fn title(&self, core: &Core<'_, '_>) -> Result<String, DesignError> {
        let address = core.windows()?.first().map_or(0, |window| window.address);
        Ok(format!("{}@{address:x}", contigo::names::node_of(core)))
    }

    /// `reg`; `None` if the core has no registers.
    fn registers(&self, core: &Core<'_, '_>) -> Result<Option<String>, DesignError> {
        let windows = core.windows()?;
        let window = |window: &contigo::design::Window<'_>| {
            format!("<{} {}>", self.number(window.address), self.number(window.len_bytes))
        };
        let windows: Vec<_> = windows.iter().map(window).collect();
        Ok(Some(format!("\t\treg = {};\n", windows.join(", "))).filter(|_| !windows.is_empty()))
    }

    /// A number in the bus's cells.
    fn number(&self, number: u64) -> String {
        if self.cells == 1 {
            format!("{number:#x}")
        } else {
            format!("{:#x} {:#x}", number >> 32, number & 0xFFFF_FFFF)
        }
    }

    fn interrupts(
        &self,
        design: &Design<'_>,
        core: &Core<'_, '_>,
        at_boot: bool,
        notes: &mut Notes,
        node: &mut String,
    ) -> Result<(), DesignError> {
        let (mut list, mut names, mut behind) = (Vec::new(), Vec::new(), false);
        for interrupt in &core.interrupts()? {
            let kind = if interrupt.trigger == Trigger::EdgeRising { 1 } else { 4 };
            match interrupt.wired {
                Wired::Processor { .. } if interrupt.trigger == Trigger::Low => {
                    notes.push(format!(
                        "{} is low or falls, which the interrupt controller cannot: it is missing",
                        interrupt.pin
                    ));
                    continue;
                }
                Wired::Processor { line } => match self.soc.shared_interrupt(line) {
                    Some(number) => list.push((self.interrupts, format!("0 {number} {kind}"))),
                    None => continue,
                },
                Wired::Controller { instance, input } if at_boot => {
                    behind = true;
                    list.push((instance, format!("{input} {kind}")));
                }
                Wired::Controller { instance, input } => {
                    notes.push(format!(
                        "its interrupt {} is input {input} of {instance}, whose driver the kernel \
                         starts at boot only (--at-boot): it is missing here, and jobs are polled",
                        interrupt.pin
                    ));
                    continue;
                }
                Wired::Elsewhere { instance } => {
                    notes.push(format!(
                        "its interrupt {} goes into {instance}: it is missing, and jobs are polled",
                        interrupt.pin
                    ));
                    continue;
                }
                _ => {
                    notes.push(format!(
                        "its interrupt {} is not connected: it is missing, and jobs are polled",
                        interrupt.pin
                    ));
                    continue;
                }
            }
            names.push(format!("\"{}\"", interrupt.pin));
        }
        if list.is_empty() {
            return Ok(());
        }
        let label = |name: &str| {
            design
                .core(name)
                .map_or_else(|_| name.to_owned(), |core| contigo::names::node_of(&core).to_string())
        };
        if behind {
            let each = list.iter().map(|(parent, cells)| format!("<&{} {cells}>", label(parent)));
            let _ = writeln!(
                node,
                "\t\tinterrupts-extended = {};",
                each.collect::<Vec<_>>().join(", ")
            );
        } else {
            let each: Vec<_> = list.iter().map(|(_, cells)| format!("<{cells}>")).collect();
            let _ = writeln!(
                node,
                "\t\tinterrupt-parent = <&{}>;\n\t\tinterrupts = {};",
                self.interrupts,
                each.join(", ")
            );
        }
        if unique(&names) {
            let _ = writeln!(node, "\t\tinterrupt-names = {};", names.join(", "));
        }
        Ok(())
    }

    fn clocks(&self, core: &Core<'_, '_>, notes: &mut Notes, node: &mut String) {
        let (mut clocks, mut foreign) = (Vec::new(), Vec::new());
        for clock in core.clocks() {
            match clock.fabric.and_then(|number| self.soc.clock_number(number)) {
                Some(number) if !clocks.contains(&number) => clocks.push(number),
                Some(_) => {}
                None => foreign.push(clock.pin),
            }
        }
        if !foreign.is_empty() {
            notes.push(format!(
                "its clock {} comes from the fabric itself, and the overlay does not turn it on",
                foreign.join(", ")
            ));
        }
        if !clocks.is_empty() {
            let each: Vec<_> =
                clocks.iter().map(|number| format!("<&{} {number}>", self.clocks)).collect();
            let _ = writeln!(node, "\t\tclocks = {};", each.join(", "));
        }
    }
}

fn unique(names: &[String]) -> bool {
    names.iter().enumerate().all(|(at, name)| !names.iter().take(at).any(|other| other == name))
}
