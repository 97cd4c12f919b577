// SPDX-License-Identifier: GPL-2.0
/*
 * An I2C bus with an INA226 at 0x40 and one at 0x41, which both measure 5 V and 1 A through 2 mOhm.
 * After the data sheet, SBOS547A: tables 7-8 to 7-23, and equations 3 and 4.
 */
#include <linux/i2c.h>
#include <linux/module.h>
#include <linux/of.h>

#include "lab.h"

#define CONFIGURATION 0x00
#define SHUNT_VOLTAGE 0x01
#define BUS_VOLTAGE 0x02
#define POWER 0x03
#define CURRENT 0x04
#define CALIBRATION 0x05
#define MAKER 0xfe
#define DIE 0xff

/* 2 mV in 2.5 uV, and 5 V in 1.25 mV. */
#define SHUNT 800
#define BUS 4000

static const u16 addresses[] = { 0x40, 0x41 };

/**
 * struct lab_monitor - a bus with its chips
 * @adapter: the framework's part
 * @pointer: each chip's register that a read takes
 * @configuration: each chip's
 * @calibration: each chip's
 */
struct lab_monitor {
	struct i2c_adapter adapter;
	u8 pointer[ARRAY_SIZE(addresses)];
	u16 configuration[ARRAY_SIZE(addresses)];
	u16 calibration[ARRAY_SIZE(addresses)];
};

static u16 lab_monitor_value(struct lab_monitor *bus, unsigned int chip)
{
	u32 current_now = SHUNT * bus->calibration[chip] / 2048;

	switch (bus->pointer[chip]) {
	case CONFIGURATION:
		return bus->configuration[chip];
	case SHUNT_VOLTAGE:
		return SHUNT;
	case BUS_VOLTAGE:
		return BUS;
	case POWER:
		return current_now * BUS / 20000;
	case CURRENT:
		return current_now;
	case CALIBRATION:
		return bus->calibration[chip];
	case MAKER:
		return 0x5449;
	case DIE:
		return 0x2260;
	default:
		return 0;
	}
}

static void lab_monitor_read(struct lab_monitor *bus, unsigned int chip, u8 *bytes)
{
	u16 value = lab_monitor_value(bus, chip);

	bytes[0] = value >> 8;
	bytes[1] = value & 0xff;
}

static void lab_monitor_write(struct lab_monitor *bus, unsigned int chip, u16 value)
{
	/* Bit 15 of the configuration is a reset. */
	if (bus->pointer[chip] == CONFIGURATION)
		bus->configuration[chip] = value & 0x8000 ? 0x4127 : value;
	else if (bus->pointer[chip] == CALIBRATION)
		bus->calibration[chip] = value & 0x7fff;
}

static int lab_monitor_xfer(struct i2c_adapter *adapter, struct i2c_msg *messages, int count)
{
	struct lab_monitor *bus = i2c_get_adapdata(adapter);
	unsigned int chip;
	int i;

	for (i = 0; i < count; i++) {
		struct i2c_msg *message = &messages[i];

		for (chip = 0; chip < ARRAY_SIZE(addresses); chip++)
			if (addresses[chip] == message->addr)
				break;
		if (chip == ARRAY_SIZE(addresses))
			return -ENXIO;
		if (message->flags & I2C_M_RD) {
			if (message->len != 2)
				return -EOPNOTSUPP;
			lab_monitor_read(bus, chip, message->buf);
			continue;
		}
		if (message->len != 1 && message->len != 3)
			return -EOPNOTSUPP;
		bus->pointer[chip] = message->buf[0];
		if (message->len == 3)
			lab_monitor_write(bus, chip, message->buf[1] << 8 | message->buf[2]);
	}
	return count;
}

static u32 lab_monitor_functionality(struct i2c_adapter *adapter)
{
	return I2C_FUNC_I2C | I2C_FUNC_SMBUS_EMUL;
}

static const struct i2c_algorithm lab_monitor_algorithm = {
	.master_xfer = lab_monitor_xfer,
	.functionality = lab_monitor_functionality,
};

static int lab_monitor_probe(struct platform_device *pdev)
{
	struct lab_monitor *bus = devm_kzalloc(&pdev->dev, sizeof(*bus), GFP_KERNEL);
	unsigned int chip;

	if (!bus)
		return -ENOMEM;
	for (chip = 0; chip < ARRAY_SIZE(addresses); chip++)
		bus->configuration[chip] = 0x4127;
	bus->adapter.owner = THIS_MODULE;
	bus->adapter.algo = &lab_monitor_algorithm;
	bus->adapter.dev.parent = &pdev->dev;
	bus->adapter.dev.of_node = pdev->dev.of_node;
	strscpy(bus->adapter.name, "contigo-lab monitors", sizeof(bus->adapter.name));
	i2c_set_adapdata(&bus->adapter, bus);
	return devm_i2c_add_adapter(&pdev->dev, &bus->adapter);
}

static const struct of_device_id lab_monitor_of_match[] = {
	{ .compatible = "contigo-lab,monitors" },
	{ }
};

static struct platform_driver lab_monitor_driver = {
	.probe = lab_monitor_probe,
	.driver = {
		.name = "contigo-lab-monitors",
		.of_match_table = lab_monitor_of_match,
		.suppress_bind_attrs = true,
	},
};

int lab_monitor_init(void)
{
	return platform_driver_register(&lab_monitor_driver);
}

void lab_monitor_exit(void)
{
	platform_driver_unregister(&lab_monitor_driver);
}
