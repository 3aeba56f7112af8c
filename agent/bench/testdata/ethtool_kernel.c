/*
 * A kernel for ethtool, loaded before it: a network device whose transceiver
 * is the file named by MODULE_IMAGE, a linear CMIS image. So ethtool, which
 * knows nothing of files, reads page by page what a real driver would give it.
 *
 * It stands in for the four calls by which ethtool reaches the kernel through
 * libmnl. Messages are those of generic netlink: linux/genetlink.h and
 * linux/ethtool_netlink.h.
 *
 *   cc -shared -fPIC -o kernel.so ethtool_kernel.c
 *   MODULE_IMAGE=module.bin LD_PRELOAD=./kernel.so ethtool -m ocstrx0
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <linux/netlink.h>
#include <linux/genetlink.h>
#include <linux/ethtool_netlink.h>

#define FAMILY 0x4F43
#define PORT 7

static unsigned char answer[2][4096];
static size_t length[2];
static int queued, taken;

struct mnl_socket;
struct mnl_socket *mnl_socket_open(int bus) { (void)bus; return (struct mnl_socket *)answer; }
int mnl_socket_bind(struct mnl_socket *s, unsigned int groups, pid_t pid) { (void)s; (void)groups; (void)pid; return 0; }
unsigned int mnl_socket_get_portid(const struct mnl_socket *s) { (void)s; return PORT; }
int mnl_socket_setsockopt(const struct mnl_socket *s, int type, void *buf, socklen_t len)
{
	(void)s; (void)type; (void)buf; (void)len;
	return 0;
}
int mnl_socket_close(struct mnl_socket *s) { (void)s; return 0; }

/* begin an answer to a request */
static struct nlmsghdr *begin(const struct nlmsghdr *to, int type)
{
	struct nlmsghdr *h = (struct nlmsghdr *)answer[queued];
	memset(answer[queued], 0, sizeof answer[queued]);
	h->nlmsg_len = NLMSG_HDRLEN;
	h->nlmsg_type = type;
	h->nlmsg_seq = to->nlmsg_seq;
	h->nlmsg_pid = PORT;
	return h;
}

static void *put(struct nlmsghdr *h, int type, const void *data, size_t n)
{
	struct nlattr *a = (struct nlattr *)((char *)h + NLMSG_ALIGN(h->nlmsg_len));
	a->nla_type = type;
	a->nla_len = NLA_HDRLEN + n;
	if (data)
		memcpy((char *)a + NLA_HDRLEN, data, n);
	h->nlmsg_len = NLMSG_ALIGN(h->nlmsg_len) + NLA_ALIGN(a->nla_len);
	return a;
}

static void end(struct nlmsghdr *h) { length[queued++] = h->nlmsg_len; }

static void status(const struct nlmsghdr *to, int error)
{
	struct nlmsghdr *h = begin(to, NLMSG_ERROR);
	struct nlmsgerr *e = (struct nlmsgerr *)((char *)h + NLMSG_HDRLEN);
	e->error = error;
	e->msg = *to;
	h->nlmsg_len += sizeof *e;
	end(h);
}

static void genl(struct nlmsghdr *h, int cmd)
{
	struct genlmsghdr *g = (struct genlmsghdr *)((char *)h + NLMSG_HDRLEN);
	g->cmd = cmd;
	g->version = 1;
	h->nlmsg_len += GENL_HDRLEN;
}

/* the family "ethtool" knows one command */
static void family(const struct nlmsghdr *to)
{
	struct nlmsghdr *h = begin(to, GENL_ID_CTRL);
	unsigned short id = FAMILY;
	unsigned int op = ETHTOOL_MSG_MODULE_EEPROM_GET, flags = GENL_CMD_CAP_DO;
	struct nlattr *ops, *one;
	genl(h, CTRL_CMD_NEWFAMILY);
	put(h, CTRL_ATTR_FAMILY_ID, &id, sizeof id);
	put(h, CTRL_ATTR_FAMILY_NAME, ETHTOOL_GENL_NAME, sizeof ETHTOOL_GENL_NAME);
	ops = put(h, CTRL_ATTR_OPS | NLA_F_NESTED, NULL, 0);
	one = put(h, 1 | NLA_F_NESTED, NULL, 0);
	put(h, CTRL_ATTR_OP_ID, &op, sizeof op);
	put(h, CTRL_ATTR_OP_FLAGS, &flags, sizeof flags);
	one->nla_len = (char *)h + h->nlmsg_len - (char *)one;
	ops->nla_len = (char *)h + h->nlmsg_len - (char *)ops;
	end(h);
}

/* bytes of one page, as a driver reads them from the module */
static int eeprom(const struct nlmsghdr *to)
{
	const char *at = (const char *)to + NLMSG_HDRLEN + GENL_HDRLEN, *stop = (const char *)to + to->nlmsg_len;
	unsigned int offset = 0, n = 0;
	unsigned char page = 0, bank = 0, data[128], reply = ETHTOOL_MSG_MODULE_EEPROM_GET_REPLY;
	struct nlmsghdr *h;
	long place;
	FILE *f;
	while (at + NLA_HDRLEN <= stop) {
		const struct nlattr *a = (const struct nlattr *)at;
		const void *v = at + NLA_HDRLEN;
		switch (a->nla_type & NLA_TYPE_MASK) {
		case ETHTOOL_A_MODULE_EEPROM_OFFSET: memcpy(&offset, v, 4); break;
		case ETHTOOL_A_MODULE_EEPROM_LENGTH: memcpy(&n, v, 4); break;
		case ETHTOOL_A_MODULE_EEPROM_PAGE: page = *(const unsigned char *)v; break;
		case ETHTOOL_A_MODULE_EEPROM_BANK: bank = *(const unsigned char *)v; break;
		}
		at += NLA_ALIGN(a->nla_len);
	}
	if (n == 0 || n > sizeof data || offset + n > 256 || (page && offset < 128))
		return -EINVAL;
	place = offset < 128 ? offset : ((long)bank * 256 + page) * 128 + offset;
	f = fopen(getenv("MODULE_IMAGE"), "rb");
	if (!f)
		return -ENODEV;
	if (fseek(f, place, SEEK_SET) || fread(data, 1, n, f) != n) {
		fclose(f);
		return -EINVAL;
	}
	fclose(f);
	h = begin(to, FAMILY);
	genl(h, reply);
	put(h, ETHTOOL_A_MODULE_EEPROM_DATA, data, n);
	end(h);
	return 0;
}

ssize_t mnl_socket_sendto(const struct mnl_socket *s, const void *buf, size_t len)
{
	const struct nlmsghdr *to = buf;
	const struct genlmsghdr *g = (const struct genlmsghdr *)((const char *)buf + NLMSG_HDRLEN);
	int error = -EOPNOTSUPP;
	(void)s;
	queued = taken = 0;
	if (to->nlmsg_type == GENL_ID_CTRL) {
		family(to);
		error = 0;
	} else if (to->nlmsg_type == FAMILY && g->cmd == ETHTOOL_MSG_MODULE_EEPROM_GET) {
		error = eeprom(to);
	}
	status(to, error);
	return len;
}

ssize_t mnl_socket_recvfrom(const struct mnl_socket *s, void *buf, size_t size)
{
	size_t n;
	(void)s;
	if (taken >= queued)
		return 0;
	n = length[taken] < size ? length[taken] : size;
	memcpy(buf, answer[taken++], n);
	return n;
}
