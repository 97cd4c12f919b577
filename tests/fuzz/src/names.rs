use contigo::names::{DeviceName, MemoryName};

pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match text.parse::<MemoryName>() {
        Ok(name) => {
            assert_eq!(name.to_string().parse(), Ok(name), "{text:?}");
            if let Some(device) = name.device() {
                assert_eq!(device.to_string().parse(), Ok(device));
            }
        }
        Err(error) => drop(error.to_string()),
    }
    match text.parse::<DeviceName>() {
        Ok(name) => assert_eq!(name.to_string().parse(), Ok(name), "{text:?}"),
        Err(error) => drop(error.to_string()),
    }
}
