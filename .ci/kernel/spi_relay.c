// SPDX-License-Identifier: GPL-2.0
// An SPI controller whose wire is a process: the bytes sent while a chip is
// selected are read from /dev/spi-relay, and as many that are written there are
// what the chip sent meanwhile. So a driver of the kernel drives a chip that a
// process models. Its chips are its children in the device tree. Beside it the
// supply that drivers of ADCs ask for, 3.3 V.
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/of.h>
#include <linux/platform_device.h>
#include <linux/regulator/fixed.h>
#include <linux/regulator/machine.h>
#include <linux/spi/spi.h>
#include <linux/uaccess.h>
#include <linux/wait.h>

static u8 wire[256];
static size_t len;
static bool held, asked; /* a process is at the wire; it is its turn */
static DECLARE_WAIT_QUEUE_HEAD(turn);

static int relay_open(struct inode *inode, struct file *f)
{
	held = true;
	return 0;
}

static int relay_release(struct inode *inode, struct file *f)
{
	held = false;
	return 0;
}

static ssize_t relay_read(struct file *f, char __user *to, size_t n, loff_t *at)
{
	if (wait_event_interruptible(turn, asked))
		return -ERESTARTSYS;
	if (n < len || copy_to_user(to, wire, len))
		return -EFAULT;
	return len;
}

static ssize_t relay_write(struct file *f, const char __user *from, size_t n, loff_t *at)
{
	if (!asked || n != len || copy_from_user(wire, from, n))
		return -EINVAL;
	asked = false;
	wake_up(&turn);
	return n;
}

static int relay_message(struct spi_controller *host, struct spi_message *m)
{
	struct spi_transfer *t, *first = NULL;
	int err = held ? 0 : -ENXIO;
	size_t n = 0;

	list_for_each_entry(t, &m->transfers, transfer_list) {
		if (!err && n + t->len > sizeof(wire))
			err = -EMSGSIZE;
		if (err)
			break;
		if (!first)
			first = t;
		if (t->tx_buf)
			memcpy(wire + n, t->tx_buf, t->len);
		else
			memset(wire + n, 0, t->len);
		n += t->len;
		if (!t->cs_change && !list_is_last(&t->transfer_list, &m->transfers))
			continue;
		len = n;
		asked = true;
		wake_up(&turn);
		if (!wait_event_timeout(turn, !asked, 10 * HZ))
			err = -ETIMEDOUT;
		for (n = 0; first; first = first == t ? NULL : list_next_entry(first, transfer_list)) {
			if (first->rx_buf)
				memcpy(first->rx_buf, wire + n, first->len);
			n += first->len;
		}
		m->actual_length += n;
		n = 0;
	}
	m->status = err;
	spi_finalize_current_message(host);
	return err;
}

static const struct file_operations relay_files = {
	.owner = THIS_MODULE,
	.open = relay_open,
	.release = relay_release,
	.read = relay_read,
	.write = relay_write,
};

static struct miscdevice relay_device = { .minor = MISC_DYNAMIC_MINOR, .name = "spi-relay", .fops = &relay_files };

static struct regulator_consumer_supply avdd = REGULATOR_SUPPLY("avdd", NULL);
static struct regulator_init_data supply = {
	.constraints = { .always_on = 1 },
	.num_consumer_supplies = 1,
	.consumer_supplies = &avdd,
};
static struct fixed_voltage_config volts = { .supply_name = "avdd", .microvolts = 3300000, .init_data = &supply };

static int relay_probe(struct platform_device *p)
{
	struct spi_controller *host = devm_spi_alloc_host(&p->dev, 0);
	int err;

	if (!host)
		return -ENOMEM;
	host->dev.of_node = p->dev.of_node;
	host->bus_num = -1;
	host->mode_bits = SPI_CPOL | SPI_CPHA;
	host->transfer_one_message = relay_message;
	err = misc_register(&relay_device);
	if (err)
		return err;
	platform_device_register_data(&p->dev, "reg-fixed-voltage", PLATFORM_DEVID_AUTO, &volts, sizeof(volts));
	return devm_spi_register_controller(&p->dev, host);
}

static const struct of_device_id relay_ids[] = { { .compatible = "ringlight,spi-relay" }, {} };
MODULE_DEVICE_TABLE(of, relay_ids);

static struct platform_driver relay_driver = {
	.driver = { .name = "spi-relay", .of_match_table = relay_ids, .suppress_bind_attrs = true },
	.probe = relay_probe,
};
builtin_platform_driver(relay_driver); /* it stays until the machine is off */

MODULE_DESCRIPTION("SPI to a process");
MODULE_LICENSE("GPL");
