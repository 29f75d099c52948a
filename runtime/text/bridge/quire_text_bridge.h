/* C interface of the Rust text library: byte-level BPE (`tokenizers`), chat templates
 * (`minijinja`). Handles are immutable after their creation; any thread may use them at the same
 * time. The caller owns what a call returns and gives it back to the matching _free. No call
 * panics, unwinds or keeps a pointer it was given. */
#ifndef QUIRE_TEXT_BRIDGE_H_
#define QUIRE_TEXT_BRIDGE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct QuireBridgeTokenizer QuireBridgeTokenizer;
typedef struct QuireBridgeTemplate QuireBridgeTemplate;

typedef struct {
  const char* data; /* may be null when size is 0 */
  size_t size;
} QuireBridgeSlice;

typedef enum {
  QUIRE_BRIDGE_OK = 0,
  QUIRE_BRIDGE_INVALID = 1, /* what was given is wrong; the message says how */
  QUIRE_BRIDGE_RAISED = 2,  /* the template called raise_exception with this message */
  QUIRE_BRIDGE_BUDGET = 3,  /* a step, recursion or output bound was reached */
  QUIRE_BRIDGE_INTERNAL = 4 /* a panic was caught; the message names the place */
} QuireBridgeCode;

/* Bytes of Rust: a result or an error message. */
typedef struct {
  char* data;
  size_t size, capacity;
} QuireBridgeBytes;
void quire_bridge_bytes_free(QuireBridgeBytes bytes);

typedef struct {
  uint32_t* data;
  size_t size, capacity;
} QuireBridgeIds;
void quire_bridge_ids_free(QuireBridgeIds ids);

typedef struct {
  QuireBridgeSlice pre_tokenizer; /* one of quire_bridge_pre_tokenizers */
  const QuireBridgeSlice* pieces; /* in the byte-level alphabet; empty = out of merges' reach */
  size_t piece_count;             /* id of a piece = its index */
  const QuireBridgeSlice* merges; /* "left right", by rank */
  size_t merge_count;
} QuireBridgeVocab;

/* Names that pre_tokenizer may have, separated by spaces. */
QuireBridgeSlice quire_bridge_pre_tokenizers(void);

QuireBridgeCode quire_bridge_tokenizer_new(const QuireBridgeVocab* vocab,
                                           QuireBridgeTokenizer** out, QuireBridgeBytes* error);
void quire_bridge_tokenizer_free(QuireBridgeTokenizer* tokenizer);

/* Ids of plain text (UTF-8): no special tokens are added or read. */
QuireBridgeCode quire_bridge_encode(const QuireBridgeTokenizer* tokenizer, QuireBridgeSlice text,
                                    QuireBridgeIds* out, QuireBridgeBytes* error);

QuireBridgeCode quire_bridge_template_new(QuireBridgeSlice source, QuireBridgeTemplate** out,
                                          QuireBridgeBytes* error);
void quire_bridge_template_free(QuireBridgeTemplate* chat_template);

typedef struct {
  QuireBridgeSlice context_json; /* object: the template's variables */
  uint64_t max_steps;
  size_t max_output_bytes;
} QuireBridgeRender;

QuireBridgeCode quire_bridge_render(const QuireBridgeTemplate* chat_template,
                                    const QuireBridgeRender* render, QuireBridgeBytes* out,
                                    QuireBridgeBytes* error);

/* Panics inside, for the test that panics are caught: QUIRE_BRIDGE_INTERNAL. */
QuireBridgeCode quire_bridge_panic(QuireBridgeBytes* error);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* QUIRE_TEXT_BRIDGE_H_ */
