/* What the parts of the SDK share. Plugins do not include it. */
#ifndef SALLYPORT_INTERNAL_H
#define SALLYPORT_INTERNAL_H

#include "sallyport.h"

typedef enum { SP_PART_TEXT, SP_PART_IMAGE, SP_PART_AUDIO, SP_PART_LINK, SP_PART_RESOURCE } sp_part_kind;

/* A part of an output. What it has of `label` and `extra` depends on the kind. */
typedef struct sp_part {
  sp_part_kind kind;
  const char *label; /* media type or address */
  const char *extra; /* title or media type, or NULL */
  sp_bytes bytes;
  struct sp_part *next;
} sp_part;

typedef struct sp_block sp_block;
typedef struct sp_read sp_read;

struct sp_call {
  sp_context context;
  yyjson_doc *arguments;
  sp_read *reads; /* the documents that the tool has read */
  yyjson_mut_doc *document;
  sp_part *first_part;
  sp_part **last_part;
  size_t parts_count;
  const char *speech;
  bool has_failed;
  sp_error error;
  const char *error_message;
  const char *connection;
  const char *problem;
  sp_block *blocks;
};

/* A tool with its function. */
typedef struct sp_registered {
  const sp_tool *tool;
  sp_run run;
  const char *place; /* its file and line */
  struct sp_registered *next;
} sp_registered;

sp_registered *sp_tools(void);

/* Stops with a message if the author has described a tool wrongly. */
void sp_check_tools(void);

/* The JSON Schema of a tool's parameters; free it. */
char *sp_schema(const sp_tool *tool);

/* Runs a tool. `call` must be zero except for its context. Returns the result's JSON, which belongs
   to the call, or NULL if the call failed. */
const char *sp_run_tool(sp_call *call, const char *name, size_t name_length, const char *arguments,
                        size_t arguments_length, size_t *result_length);

/* Frees all that belongs to a call. */
void sp_end_call(sp_call *call);

/* The bytes as UTF-8, each wrong one replaced by U+FFFD. Without a call, free the result. */
sp_bytes sp_valid_text(sp_call *call, const char *text, size_t length);

/* Copies bytes into the memory of a call. */
sp_bytes sp_copy(sp_call *call, const void *bytes, size_t length);

/* Sets the reason of a status. */
sp_status sp_not(sp_call *call, sp_status status, const char *problem, size_t length);

/* A text made like printf's; free it. */
char *sp_print(const char *format, va_list arguments);

#endif
