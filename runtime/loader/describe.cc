#include "runtime/loader/describe.h"

#include <charconv>
#include <cstdlib>
#include <map>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "runtime/base/absl_view.h"

// One ordered JSON value is the content; the text form prints the same value as lines.
namespace quire {
namespace {

using Json = nlohmann::ordered_json;

// The shortest decimal that is this float: 1e-05, not 9.999999747378752e-06.
double Shortest(float value) {
  char text[32] = {};
  std::to_chars(text, text + sizeof(text) - 1, value);
  return std::strtod(text, nullptr);
}

Json TokenJson(const VocabData& vocab, TokenId id) {
  if (id == TokenId::kNone) return nullptr;
  const auto index = static_cast<size_t>(id);
  return {{"id", index}, {"piece", vocab.pieces[index]}};
}

Json ModelJson(const ModelConfig& c) {
  return {{"architecture", c.architecture},
          {"name", c.name},
          {"quantization", c.quantization},
          {"parameters", c.parameter_count},
          {"layers", c.num_layers},
          {"hidden", c.hidden_size},
          {"heads", c.num_heads},
          {"kv_heads", c.num_kv_heads},
          {"head_dim", c.head_dim},
          {"ffn", c.ffn_size},
          {"vocab", c.vocab_size},
          {"context_tokens", c.context_tokens},
          {"rms_eps", Shortest(c.rms_eps)},
          {"rope",
           {{"kind", c.rope_kind == RopeKind::kInterleaved ? "interleaved" : "half_split"},
            {"dims", c.rope_dims},
            {"theta", Shortest(c.rope_theta)},
            {"scale", Shortest(c.rope_scale)}}}};
}

// What one decode step costs: `quire bench` measures against it.
Json CostJson(const ModelConfig& c, const ModelWeights& w) {
  const uint64_t attention = uint64_t{2} * static_cast<uint64_t>(c.num_heads + c.num_kv_heads) *
                             static_cast<uint64_t>(c.head_dim) *
                             static_cast<uint64_t>(c.hidden_size);
  const uint64_t layer = attention + uint64_t{3} * static_cast<uint64_t>(c.hidden_size) *
                                         static_cast<uint64_t>(c.ffn_size);
  const uint64_t macs = static_cast<uint64_t>(c.num_layers) * layer +
                        static_cast<uint64_t>(c.vocab_size) * static_cast<uint64_t>(c.hidden_size);
  const uint64_t kv = uint64_t{2} * static_cast<uint64_t>(c.num_layers) *
                      static_cast<uint64_t>(c.num_kv_heads) * static_cast<uint64_t>(c.head_dim);
  const uint64_t scales = kv / static_cast<uint64_t>(c.head_dim) * 2;  // one bf16 per head
  return {{"weight_bytes", w.bytes},
          {"weight_bytes_per_token", w.bytes_per_token},
          {"macs_per_token", macs},
          {"kv_bytes_per_token",
           {{"bf16", 2 * kv}, {"f32", 4 * kv}, {"int8", kv + scales}, {"int16", 2 * kv + scales}}}};
}

Json TypesJson(const GgufHeader& gguf) {
  struct Sum {
    uint64_t tensors = 0, bytes = 0;
  };
  std::map<std::string_view, Sum> sums;
  for (const GgufTensor& t : gguf.tensors) {
    Sum& sum = sums[TraitsOf(t.type).name];
    ++sum.tensors;
    sum.bytes += t.bytes;
  }
  Json types = Json::array();
  for (const auto& [name, sum] : sums)
    types.push_back({{"type", name}, {"tensors", sum.tensors}, {"bytes", sum.bytes}});
  return types;
}

Json TensorsJson(const GgufHeader& gguf) {
  Json tensors = Json::array();
  for (const GgufTensor& t : gguf.tensors) {
    tensors.push_back(
        {{"name", t.name},
         {"type", TraitsOf(t.type).name},
         {"shape", std::vector<uint64_t>(t.dims.begin(), t.dims.begin() + t.dim_count)},
         {"offset", t.begin},
         {"bytes", t.bytes}});
  }
  return tensors;
}

Json TokenizerJson(const VocabData& v, bool all) {
  Json j = {{"model", v.model},           {"pre_tokenizer", v.pre_tokenizer},
            {"tokens", v.pieces.size()},  {"merges", v.merges.size()},
            {"bos", TokenJson(v, v.bos)}, {"eos", TokenJson(v, v.eos)},
            {"eot", TokenJson(v, v.eot)}, {"add_bos", v.add_bos},
            {"add_eos", v.add_eos},       {"chat_template_bytes", v.chat_template.size()}};
  if (!all) return j;
  j["pad"] = TokenJson(v, v.pad);
  j["unknown"] = TokenJson(v, v.unknown);
  constexpr const char* kNames[] = {"",       "normal", "unknown", "control", "user_defined",
                                    "unused", "byte"};
  std::map<TokenKind, uint64_t> counts;
  Json special = Json::array();
  for (size_t id = 0; id < v.kinds.size(); ++id) {
    ++counts[v.kinds[id]];
    if (v.kinds[id] != TokenKind::kNormal && v.kinds[id] != TokenKind::kByte) {
      special.push_back({{"id", id},
                         {"kind", kNames[static_cast<size_t>(v.kinds[id])]},
                         {"piece", v.pieces[id]}});
    }
  }
  for (const auto& [kind, count] : counts) j["kinds"][kNames[static_cast<size_t>(kind)]] = count;
  j["special"] = std::move(special);
  return j;
}

// A value on one line: numbers and flat text as they are, lists by spaces, objects as key=value.
std::string Inline(const Json& value) {
  if (value.is_null()) return "none";
  if (value.is_string()) return Printable(value.get<std::string>());
  if (!value.is_structured()) return value.dump();
  std::string out;
  for (const auto& [key, item] : value.items()) {
    absl::StrAppend(&out, out.empty() ? "" : "  ", value.is_object() ? absl::StrCat(key, "=") : "",
                    Inline(item));
  }
  return value.is_array() && !value.empty() && !value[0].is_structured()
             ? absl::StrCat("[", out, "]")
             : out;
}

void AppendText(const Json& object, int indent, std::string& out) {
  for (const auto& [key, value] : object.items()) {
    const std::string pad(static_cast<size_t>(indent), ' ');
    const bool rows =
        value.is_array() && !value.empty() && (value[0].is_object() || key == "warnings");
    if (rows) {
      absl::StrAppend(&out, pad, key, ":\n");
      for (const Json& row : value) {
        absl::StrAppend(&out, pad, "  ", row.is_string() ? row.get<std::string>() : Inline(row),
                        "\n");
      }
    } else if (value.is_object() && indent == 0) {
      absl::StrAppend(&out, key, ":\n");
      AppendText(value, 2, out);
    } else {
      absl::StrAppend(&out, pad, key, ": ", Inline(value), "\n");
    }
  }
}

}  // namespace

std::string DescribeModel(const ModelFile& file, const ModelHeader& header,
                          const DescribeOptions& options) {
  Json j = {{"file", file.path()},
            {"bytes", file.size()},
            {"format",
             {{"gguf", header.gguf.version},
              {"alignment", header.gguf.alignment},
              {"keys", header.gguf.keys.size()},
              {"tensors", header.gguf.tensors.size()}}},
            {"model", ModelJson(header.config)},
            {"cost", CostJson(header.config, header.weights)},
            {"types", TypesJson(header.gguf)},
            {"tokenizer", TokenizerJson(header.vocab, options.tokenizer)}};
  j["model"]["tied_embedding"] = header.weights.lm_head.rows == 0;
  if (!options.sha256.empty()) j["sha256"] = options.sha256;
  if (options.tensors) j["tensors"] = TensorsJson(header.gguf);
  if (!header.warnings.empty()) j["warnings"] = header.warnings;
  if (options.json) {
    if (options.chat_template) j["chat_template"] = header.vocab.chat_template;
    return absl::StrCat(j.dump(-1, ' ', false, Json::error_handler_t::replace), "\n");
  }
  std::string out;
  AppendText(j, 0, out);
  if (options.chat_template)
    absl::StrAppend(&out, "chat_template:\n", header.vocab.chat_template, "\n");
  return out;
}

}  // namespace quire
