//! Drivers, settings and devices of a design's cores; and whether the fabric is loaded.

use super::ZYNQ;
use contigo::design::{Design, DesignRule};
use contigo::names;
use contigo::names::Fabric;
use std::fs;

const ODD: &str = r#"<PARAMETER NAME="C_INCLUDE_SG" VALUE="1"/><PARAMETER NAME="C_MICRO_DMA" VALUE="1"/>
<PARAMETER NAME="C_SG_INCLUDE_STSCNTRL_STRM" VALUE="1"/><PARAMETER NAME="C_SG_USE_STSAPP_LENGTH" VALUE="0"/>"#;

#[test]
fn a_core_knows_its_driver_and_its_device() {
    let design = Design::read(ZYNQ.as_bytes()).unwrap();
    let dma = design.core("axi_dma_0").unwrap();
    assert_eq!(names::driver_of(&dma).unwrap().name, "axi_dma");
    let settings =
        "length_bits=23,address_bits=32,mm2s_data_bits=32,s2mm_data_bits=32,mm2s_dre=0,s2mm_dre=1";
    assert_eq!(names::settings_of(&dma).unwrap(), settings);
    // The driver refuses this one.
    let odd = ZYNQ.replacen("<PARAMETER NAME=\"C_INCLUDE_SG\" VALUE=\"0\"/>", ODD, 1);
    let odd = names::settings_of(&Design::read(odd.as_bytes()).unwrap().core("axi_dma_0").unwrap())
        .unwrap();
    assert_eq!(odd.as_str(), format!("{settings},micro_dma=1,status_stream=1,status_length=0"));
    let scale = design.core("scale_0").unwrap();
    assert_eq!(names::driver_of(&scale).unwrap().name, "ap_ctrl");
    assert_eq!(names::device_of(&scale).unwrap().to_string(), "contigo:scale_0@43c00000");
    let gain = design.core("audio/gain").unwrap();
    assert!(names::driver_of(&gain).is_none() && names::settings_of(&gain).unwrap().is_empty());
    assert_eq!(names::device_of(&gain).unwrap().to_string(), "contigo:audio_gain@43c10000");
    assert!(
        names::device_of(&design.core("smc").unwrap())
            .unwrap_err()
            .to_string()
            .contains("sees no registers")
    );
    let long = ZYNQ.replace("audio_gain", "_9the_name_of_a_core_that_is_deep_in_a_hierarchy");
    let design = Design::read(long.as_bytes()).unwrap();
    let deep = design.core("_9the_name_of_a_core_that_is_deep_in_a_hierarchy").unwrap();
    assert_eq!(
        names::device_of(&deep).unwrap().to_string(),
        "contigo:the_name_of_a_core_that_is_deep@43c10000"
    );
}

#[test]
fn settings_that_no_core_has_are_refused() {
    let settings = |from: &str, to: &str| {
        let text = ZYNQ.replace(
            &format!("NAME=\"{from}\" VALUE=\"{}\"", if from.contains("LENGTH") { 23 } else { 32 }),
            to,
        );
        assert_ne!(text, ZYNQ);
        names::settings_of(&Design::read(text.as_bytes()).unwrap().core("axi_dma_0").unwrap())
    };
    let length = |value: &str| {
        settings("C_SG_LENGTH_WIDTH", &format!("NAME=\"C_SG_LENGTH_WIDTH\" VALUE=\"{value}\""))
    };
    let wide = length("99").unwrap_err();
    assert_eq!(
        wide.rule,
        DesignRule::OutOfRange { parameter: "C_SG_LENGTH_WIDTH", least: 8, most: 26 }
    );
    assert!(
        wide.to_string().ends_with("`axi_dma_0`: C_SG_LENGTH_WIDTH is 99, and can be 8 to 26"),
        "{wide}"
    );
    assert_eq!(length("abc").unwrap_err().rule, DesignRule::NotANumber("C_SG_LENGTH_WIDTH"));
    assert!(length("8").is_ok() && length("26").is_ok() && length("27").is_err());
    let odd = settings("C_M_AXI_S2MM_DATA_WIDTH", "NAME=\"C_M_AXI_S2MM_DATA_WIDTH\" VALUE=\"33\"")
        .unwrap_err();
    assert_eq!((odd.rule, odd.found), (DesignRule::Width, 33));
}

#[test]
fn the_fabric_is_what_the_kernel_says() {
    let root = tempfile::tempdir().unwrap();
    let below = || Fabric::below(root.path().to_str().unwrap());
    assert_eq!(below(), Fabric::Unknown);
    let manager = root.path().join("sys/class/fpga_manager/fpga0");
    fs::create_dir_all(&manager).unwrap();
    fs::write(manager.join("state"), "operating\n").unwrap();
    assert_eq!(below(), Fabric::Operating);
    fs::write(manager.join("state"), "unknown\n").unwrap();
    assert_eq!(
        below().to_string(),
        "no bitstream is loaded: the FPGA manager's state is \"unknown\""
    );
    let second = root.path().join("sys/class/fpga_manager/fpga1");
    fs::create_dir_all(&second).unwrap();
    fs::write(second.join("state"), "power off\n").unwrap();
    assert_eq!(below(), Fabric::Unknown, "which of the two managers has the design is not known");
}
