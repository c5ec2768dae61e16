/* CRC-32C (Castagnoli, RFC 3720): with the instruction of SSE 4.2 where the processor has it, else eight tables. */
#include <string.h>

#include "native.h"

#define POLYNOMIAL 0x82F63B78u

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("sse4.2"))) static uint32_t update_sse42(uint32_t crc, const unsigned char *data, size_t size) {
    uint64_t wide = crc;
    for (; size >= 8; data += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, data, 8);
        wide = __builtin_ia32_crc32di(wide, word);
    }
    crc = (uint32_t)wide;
    for (; size; data++, size--) crc = __builtin_ia32_crc32qi(crc, *data);
    return crc;
}
#endif

static uint32_t tables[8][256];

/* Runs when the library is loaded, before any other thread can use the tables. */
__attribute__((constructor)) static void make_tables(void) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++) crc = (crc >> 1) ^ (POLYNOMIAL & (0u - (crc & 1)));
        tables[0][byte] = crc;
    }
    for (int table = 1; table < 8; table++)
        for (int byte = 0; byte < 256; byte++) {
            uint32_t before = tables[table - 1][byte];
            tables[table][byte] = (before >> 8) ^ tables[0][before & 0xFF];
        }
}

static uint32_t update_tables(uint32_t crc, const unsigned char *data, size_t size) {
    for (; size >= 8; data += 8, size -= 8) {
        uint32_t low = crc ^ load_le32(data);
        crc = tables[7][low & 0xFF] ^ tables[6][(low >> 8) & 0xFF] ^ tables[5][(low >> 16) & 0xFF] ^
              tables[4][low >> 24] ^ tables[3][data[4]] ^ tables[2][data[5]] ^ tables[1][data[6]] ^
              tables[0][data[7]];
    }
    for (; size; data++, size--) crc = (crc >> 8) ^ tables[0][(crc ^ *data) & 0xFF];
    return crc;
}

uint32_t zarrfs_crc32c(const unsigned char *data, size_t size) {
#if defined(__x86_64__) && defined(__GNUC__)
    if (__builtin_cpu_supports("sse4.2")) return ~update_sse42(~0u, data, size);
#endif
    return ~update_tables(~0u, data, size);
}

uint32_t zarrfs_crc32c_tables(const unsigned char *data, size_t size) {
    return ~update_tables(~0u, data, size);
}
