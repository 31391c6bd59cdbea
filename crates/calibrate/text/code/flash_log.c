/*
 * flash_log.c - power-fail-safe circular event log on NOR flash
 *
 * The log occupies a whole number of erase sectors. Each sector begins with a
 * header carrying a sequence number; records follow back to back and are
 * aligned to four bytes. Because NOR flash can only clear bits between erases,
 * a record is committed in two steps: first the body is programmed with the
 * state byte still at 0xFF, then the state byte is pulled down to VALID. A
 * record whose commit was interrupted by a brown-out is skipped at mount time.
 *
 *   sector:  | magic | seq | erase count | crc |  rec  |  rec  | ... | 0xFF.. |
 *   record:  | state | type | len lo | len hi | timestamp | payload | crc |
 *
 * The module allocates nothing, never blocks except inside the driver, and is
 * not reentrant: callers running under the RTOS take the log mutex themselves.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FLOG_MAGIC        0x474F4C46u   /* "FLOG", little endian */
#define FLOG_ALIGN        4u
#define FLOG_MAX_PAYLOAD  240u

enum flog_status {
    FLOG_OK = 0,
    FLOG_EIO = -1,       /* the driver reported a failure           */
    FLOG_EINVAL = -2,    /* bad argument or unusable geometry       */
    FLOG_ENOENT = -3,    /* no further record                       */
    FLOG_ECORRUPT = -4   /* checksum mismatch in a committed record */
};

enum record_state {
    REC_FREE = 0xFF,
    REC_VALID = 0x7E,
    REC_DELETED = 0x00
};

struct flog_driver {
    int (*read)(void *ctx, uint32_t addr, void *dst, size_t n);
    int (*program)(void *ctx, uint32_t addr, const void *src, size_t n);
    int (*erase)(void *ctx, uint32_t addr);
    void *ctx;
};

struct flog {
    const struct flog_driver *drv;
    uint32_t base;
    uint32_t sector_size;
    uint16_t sector_count;
    uint16_t head;          /* sector being written          */
    uint16_t tail;          /* oldest sector holding records */
    uint32_t head_offset;   /* next free byte within head    */
    uint32_t head_seq;
    uint32_t dropped;       /* records lost to recycling since mount */
};

struct flog_cursor {
    uint16_t sector;
    uint32_t offset;
    bool started;
};

struct sector_header {
    uint32_t magic;
    uint32_t seq;
    uint32_t erase_count;
    uint32_t crc;
};

struct record_header {
    uint8_t state;
    uint8_t type;
    uint8_t len_lo;
    uint8_t len_hi;
    uint32_t timestamp;
};

/* ------------------------------------------------------------------ */
/* Small helpers                                                       */
/* ------------------------------------------------------------------ */

/* Reflected CRC-32 with a 16-entry table: half the speed of the byte-wise
 * version, a sixteenth of its footprint. Start with 0, chain at will. */
static uint32_t crc32_update(uint32_t crc, const void *data, size_t n)
{
    static const uint32_t nibble[16] = {
        0x00000000u, 0x1DB71064u, 0x3B6E20C8u, 0x26D930ACu,
        0x76DC4190u, 0x6B6B51F4u, 0x4DB26158u, 0x5005713Cu,
        0xEDB88320u, 0xF00F9344u, 0xD6D6A3E8u, 0xCB61B38Cu,
        0x9B64C2B0u, 0x86D3D2D4u, 0xA00AE278u, 0xBDBDF21Cu
    };
    const uint8_t *p = data;

    crc = ~crc;
    while (n--) {
        crc ^= *p++;
        crc = (crc >> 4) ^ nibble[crc & 0x0F];
        crc = (crc >> 4) ^ nibble[crc & 0x0F];
    }
    return ~crc;
}

static uint32_t align_up(uint32_t n)
{
    return (n + FLOG_ALIGN - 1u) & ~(FLOG_ALIGN - 1u);
}

static uint32_t sector_addr(const struct flog *log, uint16_t sector)
{
    return log->base + (uint32_t)sector * log->sector_size;
}

static uint16_t next_sector(const struct flog *log, uint16_t sector)
{
    return (uint16_t)((sector + 1u) % log->sector_count);
}

static uint32_t record_span(uint32_t payload_len)
{
    return (uint32_t)sizeof(struct record_header) + align_up(payload_len) + 4u;
}

/* Sequence numbers wrap; compare them the way TCP does. */
static bool seq_newer(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) > 0;
}

static int flash_read(const struct flog *log, uint32_t addr, void *dst, size_t n)
{
    return log->drv->read(log->drv->ctx, addr, dst, n) == 0 ? FLOG_OK : FLOG_EIO;
}

static int flash_program(const struct flog *log, uint32_t addr, const void *src, size_t n)
{
    return log->drv->program(log->drv->ctx, addr, src, n) == 0 ? FLOG_OK : FLOG_EIO;
}

/* ------------------------------------------------------------------ */
/* Sectors                                                             */
/* ------------------------------------------------------------------ */

static int load_sector_header(const struct flog *log, uint16_t sector,
                              struct sector_header *out, bool *valid)
{
    int rc = flash_read(log, sector_addr(log, sector), out, sizeof *out);

    *valid = rc == FLOG_OK
          && out->magic == FLOG_MAGIC
          && out->crc == crc32_update(0, out, offsetof(struct sector_header, crc));
    return rc;
}

static int open_sector(struct flog *log, uint16_t sector, uint32_t seq)
{
    struct sector_header old, fresh;
    bool had_header;
    int rc;

    rc = load_sector_header(log, sector, &old, &had_header);
    if (rc != FLOG_OK)
        return rc;

    if (log->drv->erase(log->drv->ctx, sector_addr(log, sector)) != 0)
        return FLOG_EIO;

    fresh.magic = FLOG_MAGIC;
    fresh.seq = seq;
    fresh.erase_count = had_header ? old.erase_count + 1u : 1u;
    fresh.crc = crc32_update(0, &fresh, offsetof(struct sector_header, crc));

    rc = flash_program(log, sector_addr(log, sector), &fresh, sizeof fresh);
    if (rc != FLOG_OK)
        return rc;

    log->head = sector;
    log->head_seq = seq;
    log->head_offset = sizeof fresh;
    return FLOG_OK;
}

/*
 * Walks the records of the head sector to find the first free byte. An
 * interrupted write leaves a header with state FREE but a plausible length;
 * we must step over it, since its bytes can no longer be programmed.
 */
static int find_write_position(struct flog *log)
{
    uint32_t offset = sizeof(struct sector_header);

    while (offset + record_span(0) <= log->sector_size) {
        struct record_header rec;
        uint32_t len;
        int rc = flash_read(log, sector_addr(log, log->head) + offset, &rec, sizeof rec);

        if (rc != FLOG_OK)
            return rc;

        len = (uint32_t)rec.len_lo | (uint32_t)rec.len_hi << 8;
        if (rec.state == REC_FREE && len == 0xFFFFu && rec.type == 0xFF)
            break;
        if (len > FLOG_MAX_PAYLOAD) {
            /* Torn length field: nothing after it can be trusted. */
            offset = log->sector_size;
            break;
        }
        offset += record_span(len);
    }
    log->head_offset = offset;
    return FLOG_OK;
}

/* Counts what will be lost when the oldest sector is recycled. */
static uint32_t count_valid(const struct flog *log, uint16_t sector)
{
    uint32_t offset = sizeof(struct sector_header);
    uint32_t count = 0;

    while (offset + record_span(0) <= log->sector_size) {
        struct record_header rec;
        uint32_t len;

        if (flash_read(log, sector_addr(log, sector) + offset, &rec, sizeof rec) != FLOG_OK)
            break;
        len = (uint32_t)rec.len_lo | (uint32_t)rec.len_hi << 8;
        if (len > FLOG_MAX_PAYLOAD)
            break;
        if (rec.state == REC_VALID)
            count++;
        offset += record_span(len);
    }
    return count;
}

static int advance_head(struct flog *log)
{
    uint16_t next = next_sector(log, log->head);

    if (next == log->tail) {
        log->dropped += count_valid(log, next);
        log->tail = next_sector(log, next);
    }
    return open_sector(log, next, log->head_seq + 1u);
}

/* ------------------------------------------------------------------ */
/* Public interface                                                    */
/* ------------------------------------------------------------------ */

int flog_mount(struct flog *log, const struct flog_driver *drv,
               uint32_t base, uint32_t sector_size, uint16_t sector_count)
{
    bool any = false;
    uint32_t newest = 0, oldest = 0;
    uint16_t i;

    if (!log || !drv || sector_count < 2 ||
        sector_size < sizeof(struct sector_header) + record_span(FLOG_MAX_PAYLOAD))
        return FLOG_EINVAL;

    memset(log, 0, sizeof *log);
    log->drv = drv;
    log->base = base;
    log->sector_size = sector_size;
    log->sector_count = sector_count;

    for (i = 0; i < sector_count; i++) {
        struct sector_header hdr;
        bool valid;
        int rc = load_sector_header(log, i, &hdr, &valid);

        if (rc != FLOG_OK)
            return rc;
        if (!valid)
            continue;
        if (!any || seq_newer(hdr.seq, newest)) {
            newest = hdr.seq;
            log->head = i;
        }
        if (!any || seq_newer(oldest, hdr.seq)) {
            oldest = hdr.seq;
            log->tail = i;
        }
        any = true;
    }

    if (!any) {
        log->tail = 0;
        return open_sector(log, 0, 1u);
    }
    log->head_seq = newest;
    return find_write_position(log);
}

int flog_append(struct flog *log, uint8_t type, uint32_t timestamp,
                const void *payload, uint16_t len)
{
    static const uint8_t pad[FLOG_ALIGN] = { 0xFF, 0xFF, 0xFF, 0xFF };
    const uint8_t commit = REC_VALID;
    struct record_header rec;
    uint32_t span = record_span(len);
    uint32_t addr, crc, body;
    int rc;

    if (len > FLOG_MAX_PAYLOAD || type == 0xFF || (len > 0 && !payload))
        return FLOG_EINVAL;

    if (log->head_offset + span > log->sector_size) {
        rc = advance_head(log);
        if (rc != FLOG_OK)
            return rc;
    }

    rec.state = REC_FREE;
    rec.type = type;
    rec.len_lo = (uint8_t)(len & 0xFFu);
    rec.len_hi = (uint8_t)(len >> 8);
    rec.timestamp = timestamp;

    /* The state byte changes after the fact, so it stays out of the checksum. */
    crc = crc32_update(0, &rec.type, sizeof rec - offsetof(struct record_header, type));
    crc = crc32_update(crc, payload, len);

    addr = sector_addr(log, log->head) + log->head_offset;
    body = addr + (uint32_t)sizeof rec;

    /* From here on the space is spent, whatever the driver says. */
    log->head_offset += span;

    if ((rc = flash_program(log, addr, &rec, sizeof rec)) != FLOG_OK)
        return rc;
    if (len > 0 && (rc = flash_program(log, body, payload, len)) != FLOG_OK)
        return rc;
    if (align_up(len) != len &&
        (rc = flash_program(log, body + len, pad, align_up(len) - len)) != FLOG_OK)
        return rc;
    if ((rc = flash_program(log, body + align_up(len), &crc, sizeof crc)) != FLOG_OK)
        return rc;
    return flash_program(log, addr, &commit, 1);
}

void flog_rewind(const struct flog *log, struct flog_cursor *cur)
{
    cur->sector = log->tail;
    cur->offset = sizeof(struct sector_header);
    cur->started = true;
}

/*
 * Fetches the next committed record, oldest first. The buffer must hold
 * FLOG_MAX_PAYLOAD bytes. After FLOG_ECORRUPT the cursor already points past
 * the bad record, so the caller may log the fact and carry on.
 */
int flog_next(const struct flog *log, struct flog_cursor *cur,
              uint8_t *type, uint32_t *timestamp, uint8_t *buf, uint16_t *len)
{
    if (!cur->started)
        flog_rewind(log, cur);

    for (;;) {
        struct record_header rec;
        uint32_t limit, addr, n, stored, crc;
        int rc;

        limit = cur->sector == log->head ? log->head_offset : log->sector_size;
        if (cur->offset + record_span(0) > limit) {
            if (cur->sector == log->head)
                return FLOG_ENOENT;
            cur->sector = next_sector(log, cur->sector);
            cur->offset = sizeof(struct sector_header);
            continue;
        }

        addr = sector_addr(log, cur->sector) + cur->offset;
        if ((rc = flash_read(log, addr, &rec, sizeof rec)) != FLOG_OK)
            return rc;

        n = (uint32_t)rec.len_lo | (uint32_t)rec.len_hi << 8;
        if (n > FLOG_MAX_PAYLOAD) {
            cur->offset = log->sector_size;     /* unused tail of this sector */
            continue;
        }
        cur->offset += record_span(n);
        if (rec.state != REC_VALID)
            continue;

        addr += (uint32_t)sizeof rec;
        if ((rc = flash_read(log, addr, buf, n)) != FLOG_OK ||
            (rc = flash_read(log, addr + align_up(n), &stored, sizeof stored)) != FLOG_OK)
            return rc;

        crc = crc32_update(0, &rec.type, sizeof rec - offsetof(struct record_header, type));
        crc = crc32_update(crc, buf, n);
        if (crc != stored)
            return FLOG_ECORRUPT;

        *type = rec.type;
        *timestamp = rec.timestamp;
        *len = (uint16_t)n;
        return FLOG_OK;
    }
}
