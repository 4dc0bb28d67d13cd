/* A libnvidia-ml for tests: answers from the file that FAKE_NVML_SCENARIO names, with NVML's own structs and codes.
 *
 * A scenario is lines of "key value…". Lines before the first "gpu" are the machine's, the others belong to the last
 * gpu. "error FUNCTION CODE" makes a function fail. With -DOLD_DRIVER the functions of newer drivers do not exist. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS, UNINITIALIZED, INVALID_ARGUMENT, NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND = 6, INSUFFICIENT_SIZE };
enum { MAX_GPUS = 16, MAX_LINES = 128, LINE = 256 };

typedef struct { int is_mig; int count; char lines[MAX_LINES][LINE]; } part;
typedef struct { int is_mig; part *gpu; int id; const char *text; } mig;
typedef unsigned int uint;

static part machine, gpus[MAX_GPUS];
static mig migs[MAX_GPUS][8];
static int gpu_count;

static const char *nth(const part *p, const char *key, int n) {
    size_t length = strlen(key);
    for (int i = 0; i < p->count; i++)
        if (!strncmp(p->lines[i], key, length) && p->lines[i][length] == ' ' && n-- == 0)
            return p->lines[i] + length + 1;
    return NULL;
}

static const char *get(const part *p, const char *key) { return nth(p, key, 0); }

static int failure(const part *p, const char *function) {
    char name[LINE];
    int code;
    for (int i = 0; nth(p, "error", i); i++)
        if (sscanf(nth(p, "error", i), "%255s %d", name, &code) == 2 && !strcmp(name, function)) return code;
    return SUCCESS;
}

#define FAIL_IF_TOLD(p) do { int code = failure(p, __func__); if (code) return code; } while (0)

static int text(const part *p, const char *key, char *out, uint size) {
    const char *value = get(p, key);
    if (!value) return NOT_SUPPORTED;
    if (strlen(value) >= size) return INSUFFICIENT_SIZE;
    strcpy(out, value);
    return SUCCESS;
}

static int number(const part *p, const char *key, uint *out) {
    const char *value = get(p, key);
    if (!value) return NOT_SUPPORTED;
    *out = (uint)strtoul(value, NULL, 0);
    return SUCCESS;
}

int nvmlInitWithFlags(uint flags) {
    char line[LINE];
    part *current = &machine;
    FILE *file = fopen(getenv("FAKE_NVML_SCENARIO"), "r");
    (void)flags;
    if (!file) return 999;
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        if (!strcmp(line, "gpu")) { current = &gpus[gpu_count++]; continue; }
        if (*line && *line != '#') strcpy(current->lines[current->count++], line);
    }
    fclose(file);
    FAIL_IF_TOLD(&machine);
    return SUCCESS;
}

int nvmlShutdown(void) { return SUCCESS; }

const char *nvmlErrorString(int code) { (void)code; return "an error of the fake"; }

int nvmlSystemGetDriverVersion(char *out, uint size) { FAIL_IF_TOLD(&machine); return text(&machine, "driver", out, size); }
int nvmlSystemGetCudaDriverVersion(int *out) { FAIL_IF_TOLD(&machine); return number(&machine, "cuda", (uint *)out); }

int nvmlDeviceGetCount_v2(uint *out) { FAIL_IF_TOLD(&machine); *out = (uint)gpu_count; return SUCCESS; }

int nvmlDeviceGetHandleByIndex_v2(uint index, part **out) {
    if (index >= (uint)gpu_count) return INVALID_ARGUMENT;
    FAIL_IF_TOLD(&gpus[index]);
    *out = &gpus[index];
    return SUCCESS;
}

int nvmlDeviceGetMinorNumber(part *p, uint *out) { FAIL_IF_TOLD(p); return number(p, "minor", out); }
int nvmlDeviceGetName(part *p, char *out, uint size) { FAIL_IF_TOLD(p); return text(p, "name", out, size); }
int nvmlDeviceGetBrand(part *p, uint *out) { FAIL_IF_TOLD(p); return number(p, "brand", out); }
int nvmlDeviceGetVirtualizationMode(part *p, unsigned long long *out) {
    uint mode = 0;
    FAIL_IF_TOLD(p);
    number(p, "virtualization", &mode);
    *out = mode;
    return SUCCESS;
}

int nvmlDeviceGetUUID(part *p, char *out, uint size) {
    if (!p->is_mig) { FAIL_IF_TOLD(p); return text(p, "uuid", out, size); }
    mig *m = (mig *)p;
    snprintf(out, size, "MIG-%s", strrchr(m->text, ' ') + 1);
    return SUCCESS;
}

int nvmlDeviceGetCudaComputeCapability(part *p, int *major, int *minor) {
    FAIL_IF_TOLD(p);
    return get(p, "capability") && sscanf(get(p, "capability"), "%d.%d", major, minor) == 2 ? SUCCESS : NOT_SUPPORTED;
}

int nvmlDeviceGetMemoryInfo(part *p, unsigned long long *total_free_used) {
    FAIL_IF_TOLD(p);
    if (!get(p, "memory")) return NOT_SUPPORTED;
    total_free_used[0] = strtoull(get(p, "memory"), NULL, 10);
    return SUCCESS;
}

typedef struct { char legacy[16]; uint domain, bus, device, id, subsystem; char bus_id[32]; } pci_info;

static int pci(const char *address, pci_info *out) {
    uint function;
    memset(out, 0, sizeof *out);
    if (!address || sscanf(address, "%x:%x:%x.%x", &out->domain, &out->bus, &out->device, &function) != 4) return NOT_SUPPORTED;
    snprintf(out->bus_id, sizeof out->bus_id, "%08X:%02X:%02X.%u", out->domain, out->bus, out->device, function);
    return SUCCESS;
}

int nvmlDeviceGetPciInfo_v3(part *p, pci_info *out) { FAIL_IF_TOLD(p); return pci(get(p, "bus"), out); }

/* "link STATE TYPE PEER": in the order of the links. */
static int link_line(part *p, uint link, uint *state, uint *type, char *peer) {
    const char *line = nth(p, "link", (int)link);
    if (!line) return nth(p, "link", 0) ? INVALID_ARGUMENT : NOT_SUPPORTED;
    return sscanf(line, "%u %u %31s", state, type, peer) == 3 ? SUCCESS : INVALID_ARGUMENT;
}

int nvmlDeviceGetNvLinkState(part *p, uint link, uint *out) {
    uint type; char peer[32];
    FAIL_IF_TOLD(p);
    return link_line(p, link, out, &type, peer);
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(part *p, uint link, pci_info *out) {
    uint state, type; char peer[32];
    FAIL_IF_TOLD(p);
    int code = link_line(p, link, &state, &type, peer);
    return code ? code : pci(peer, out);
}

int nvmlDeviceGetMigMode(part *p, uint *current, uint *pending) {
    FAIL_IF_TOLD(p);
    if (!get(p, "mig")) return NOT_SUPPORTED;
    return sscanf(get(p, "mig"), "%u %u", current, pending) == 2 ? SUCCESS : NOT_SUPPORTED;
}

typedef struct { uint id, p2p, slices, count, sm, ce, dec, enc, jpeg, ofa; unsigned long long memory; } profile_v1;
typedef struct { uint version, id, p2p, slices, count, sm, ce, dec, enc, jpeg, ofa; unsigned long long memory; char name[96]; } profile_v2;

/* "profile ENUM id slices count sm ce dec enc jpeg ofa memoryMB name" */
static int profile(part *p, uint which, profile_v1 *out, char *name) {
    for (int i = 0; nth(p, "profile", i); i++) {
        uint found;
        memset(out, 0, sizeof *out);
        if (sscanf(nth(p, "profile", i), "%u %u %u %u %u %u %u %u %u %u %llu %95s", &found, &out->id, &out->slices, &out->count,
                   &out->sm, &out->ce, &out->dec, &out->enc, &out->jpeg, &out->ofa, &out->memory, name) == 12 && found == which)
            return SUCCESS;
    }
    return NOT_SUPPORTED;
}

int nvmlDeviceGetGpuInstanceProfileInfo(part *p, uint which, profile_v1 *out) {
    char name[96];
    FAIL_IF_TOLD(p);
    return profile(p, which, out, name);
}

typedef struct { uint start, size; } placement;

/* "placements PROFILE_ID start:size …" */
int nvmlDeviceGetGpuInstancePossiblePlacements_v2(part *p, uint id, placement *out, uint *count) {
    FAIL_IF_TOLD(p);
    for (int i = 0; nth(p, "placements", i); i++) {
        char line[LINE], *word;
        uint room = *count;
        strcpy(line, nth(p, "placements", i));
        word = strtok(line, " ");
        if ((uint)atoi(word) != id) continue;
        for (*count = 0; (word = strtok(NULL, " ")); (*count)++) {
            if (!out) continue;
            if (*count >= room) return INSUFFICIENT_SIZE;
            sscanf(word, "%u:%u", &out[*count].start, &out[*count].size);
        }
        return SUCCESS;
    }
    *count = 0;
    return SUCCESS;
}

int nvmlDeviceGetMaxMigDeviceCount(part *p, uint *out) { FAIL_IF_TOLD(p); *out = get(p, "mig") ? 7 : 0; return SUCCESS; }

/* "instance PROFILE_ID START SIZE UUID": in the order of the MIG devices. */
int nvmlDeviceGetMigDeviceHandleByIndex(part *p, uint index, mig **out) {
    const char *line = nth(p, "instance", (int)index);
    FAIL_IF_TOLD(p);
    if (!line || index >= 8) return NOT_FOUND;
    *out = &migs[p - gpus][index];
    **out = (mig){1, p, (int)index, line};
    return SUCCESS;
}

int nvmlDeviceGetGpuInstanceId(mig *m, uint *out) { *out = (uint)m->id; return SUCCESS; }

int nvmlDeviceGetGpuInstanceById(part *p, uint id, mig **out) {
    FAIL_IF_TOLD(p);
    *out = &migs[p - gpus][id];
    return SUCCESS;
}

typedef struct { void *device; uint id, profile; placement place; } instance_info;

int nvmlGpuInstanceGetInfo(mig *m, instance_info *out) {
    memset(out, 0, sizeof *out);
    out->id = (uint)m->id;
    return sscanf(m->text, "%u %u %u", &out->profile, &out->place.start, &out->place.size) == 3 ? SUCCESS : NOT_FOUND;
}

#ifndef OLD_DRIVER
int nvmlDeviceGetArchitecture(part *p, uint *out) { FAIL_IF_TOLD(p); return number(p, "architecture", out); }
int nvmlDeviceGetModuleId(part *p, uint *out) { FAIL_IF_TOLD(p); return number(p, "module", out); }

typedef struct { uint version, value; } addressing_mode;
int nvmlDeviceGetAddressingMode(part *p, addressing_mode *out) { FAIL_IF_TOLD(p); return number(p, "addressing", &out->value); }

int nvmlDeviceGetNvLinkRemoteDeviceType(part *p, uint link, uint *out) {
    uint state; char peer[32];
    FAIL_IF_TOLD(p);
    return link_line(p, link, &state, out, peer);
}

int nvmlDeviceGetGpuInstanceProfileInfoV(part *p, uint which, profile_v2 *out) {
    profile_v1 old; char name[96];
    FAIL_IF_TOLD(p);
    int code = profile(p, which, &old, name);
    if (code) return code;
    *out = (profile_v2){out->version, old.id, 0, old.slices, old.count, old.sm, old.ce, old.dec, old.enc, old.jpeg, old.ofa, old.memory, ""};
    snprintf(out->name, sizeof out->name, "MIG %.64s", name);
    return SUCCESS;
}

typedef struct { uint version; unsigned char uuid[16]; uint status, clique; unsigned char state; uint health; } fabric_v2;

/* "fabric STATE STATUS CLIQUE 32-HEX-DIGITS" */
int nvmlDeviceGetGpuFabricInfoV(part *p, fabric_v2 *out) {
    uint state, byte; char digits[33];
    FAIL_IF_TOLD(p);
    if (!get(p, "fabric") || sscanf(get(p, "fabric"), "%u %u %u %32s", &state, &out->status, &out->clique, digits) != 4) return NOT_SUPPORTED;
    out->state = (unsigned char)state;
    for (int i = 0; i < 16; i++) { sscanf(digits + 2 * i, "%2x", &byte); out->uuid[i] = (unsigned char)byte; }
    return SUCCESS;
}
#endif
