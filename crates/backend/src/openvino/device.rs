//! Which of OpenVINO's devices a session runs on.

use ::openvino::{Core, DeviceType, PropertyKey};

use super::words;

/// The device that is always there.
pub(super) const CPU: &str = "CPU";

/// OpenVINO's name for a device that is there. A name without a number takes the index: `GPU` and 1 are `GPU.1`.
pub(super) fn resolve(core: &Core, name: &str, index: u32) -> Result<String, String> {
    if name == CPU {
        return choose(name, index, &[CPU.to_owned()]);
    }
    // Asking for all of them loads every plugin, so a CPU session does not.
    let devices = core.available_devices().map_err(|e| format!("cannot list the devices: {}", words(&e)))?;
    let devices: Vec<String> = devices.iter().map(ToString::to_string).collect();
    choose(name, index, &devices)
}

fn choose(name: &str, index: u32, devices: &[String]) -> Result<String, String> {
    let has = |name: &str| devices.iter().any(|device| device == name);
    if name == CPU && index > 0 {
        return Err(format!("there is no device {index}; the CPU is device 0"));
    }
    let full = match name.split_once('.') {
        Some(_) if index > 0 => return Err(format!("device {index} was asked for, but {name} has a number already")),
        None if index > 0 => format!("{name}.{index}"),
        _ => name.to_owned(),
    };
    // The only one of its kind has no number in the list, the first of several has.
    let first = full.strip_suffix(".0").map_or_else(|| format!("{full}.0"), str::to_owned);
    match [full, first].into_iter().find(|name| has(name)) {
        Some(device) => Ok(device),
        None if index > 0 => Err(format!("there is no device {name}.{index}; there is {}", devices.join(", "))),
        None => Err(format!("there is no device {name}; there is {}", devices.join(", "))),
    }
}

/// A device for the record: `CPU: AMD EPYC …`.
pub(super) fn in_words(core: &Core, device: &str) -> String {
    match core.get_property(&DeviceType::from(device), &PropertyKey::DeviceFullName) {
        Ok(full) => format!("{device}: {}", full.trim()),
        Err(_) => device.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::choose;

    fn among(name: &str, index: u32, devices: &[&str]) -> Result<String, String> {
        choose(name, index, &devices.iter().map(|d| (*d).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_name_and_an_index_give_one_device() {
        assert_eq!(among("CPU", 0, &["CPU"]).unwrap(), "CPU");
        assert_eq!(among("GPU", 0, &["CPU", "GPU"]).unwrap(), "GPU");
        assert_eq!(among("GPU.0", 0, &["CPU", "GPU"]).unwrap(), "GPU");
        assert_eq!(among("GPU", 0, &["CPU", "GPU.0", "GPU.1"]).unwrap(), "GPU.0");
        assert_eq!(among("GPU", 1, &["CPU", "GPU.0", "GPU.1"]).unwrap(), "GPU.1");
        assert_eq!(among("GPU.1", 0, &["CPU", "GPU.0", "GPU.1"]).unwrap(), "GPU.1");
    }

    #[test]
    fn what_is_not_there_is_refused_with_what_is() {
        assert!(among("CPU", 99, &["CPU"]).unwrap_err().contains("device 99"));
        assert_eq!(among("GPU", 0, &["CPU", "NPU"]).unwrap_err(), "there is no device GPU; there is CPU, NPU");
        assert!(among("GPU", 2, &["CPU", "GPU.0", "GPU.1"]).unwrap_err().contains("no device GPU.2"));
        assert!(among("GPU.0", 1, &["CPU", "GPU.0"]).unwrap_err().contains("a number already"));
        assert!(among("AUTO", 0, &["CPU"]).is_err(), "a device that chooses for itself proves nothing");
    }
}
