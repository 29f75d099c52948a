#include "tests/testing/tiny_model.h"

#include <cmath>
#include <random>

#include "absl/log/check.h"
#include "tests/testing/random_matrix.h"

namespace quire {
namespace {

using Vector = std::vector<double>;

class Builder {
 public:
  Builder(uint64_t seed, Arena& arena) : random_(seed), arena_(arena) {}

  PackedMatrix Matrix(DType type, int32_t rows, int32_t cols) {
    const std::vector<std::byte> file = RandomMatrix(type, rows, cols, random_);
    PackedMatrix m{.type = type, .rows = rows, .cols = cols, .panel_bytes = PanelBytes(type, cols)};
    const std::span<std::byte> memory = arena_.Take(PackedBytes(type, rows, cols));
    PackPanels(file, m, 0, m.panels(), memory.data());
    m.data = memory.data();
    return m;
  }
  std::span<const float> Uniform(int32_t count, float low, float high) {
    std::uniform_real_distribution<float> uniform(low, high);
    const std::span<float> v = arena_.TakeArray<float>(count);
    for (float& x : v) x = uniform(random_);
    return v;
  }

 private:
  std::mt19937_64 random_;
  Arena& arena_;
};

Vector Row(const PackedMatrix& m, int32_t row) {
  std::vector<float> values(m.cols);
  UnpackRow(m, row, values.data());
  return {values.begin(), values.end()};
}

Vector Product(const PackedMatrix& m, const Vector& x) {
  Vector y(m.rows);
  for (int32_t r = 0; r < m.rows; ++r) {
    const Vector w = Row(m, r);
    for (int32_t c = 0; c < m.cols; ++c) y[r] += w[c] * x[c];
  }
  return y;
}

Vector Norm(const Vector& x, std::span<const float> weight, double eps) {
  double sum = 0;
  for (double v : x) sum += v * v;
  const double scale = 1.0 / std::sqrt(sum / static_cast<double>(x.size()) + eps);
  Vector y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] * scale * weight[i];
  return y;
}

void Rotate(const TinyModel& model, int32_t position, double* head) {
  const ModelConfig& c = model.config;
  for (int32_t i = 0; i < c.rope_dims / 2; ++i) {
    double frequency = std::pow(double{c.rope_theta}, -2.0 * i / c.rope_dims) / c.rope_scale;
    if (!model.weights.rope_factors.empty()) frequency /= model.weights.rope_factors[i];
    const bool pairs = c.rope_kind == RopeKind::kInterleaved;
    double& a = head[pairs ? 2 * i : i];
    double& b = head[pairs ? 2 * i + 1 : i + c.rope_dims / 2];
    const double angle = position * frequency, x = a, y = b;
    a = x * std::cos(angle) - y * std::sin(angle);
    b = y * std::cos(angle) + x * std::sin(angle);
  }
}

// Softmax(q K) V of one head over positions [0, count).
Vector AttendHead(const double* q, const std::vector<Vector>& k, const std::vector<Vector>& v,
                  int32_t offset, const ModelConfig& c) {
  std::vector<double> p(k.size());
  double total = 0;
  for (size_t t = 0; t < k.size(); ++t) {
    for (int32_t d = 0; d < c.head_dim; ++d) p[t] += q[d] * k[t][offset + d];
    p[t] = std::exp(p[t] * c.attention_scale);
    total += p[t];
  }
  Vector out(c.head_dim);
  for (size_t t = 0; t < k.size(); ++t) {
    for (int32_t d = 0; d < c.head_dim; ++d) out[d] += p[t] / total * v[t][offset + d];
  }
  return out;
}

struct Cache {
  std::vector<Vector> k, v;  // by position
};

void Layer(const TinyModel& model, int32_t layer, Cache& cache, Vector& x) {
  const ModelConfig& c = model.config;
  const LayerWeights& w = model.weights.layers[layer];
  const int32_t position = static_cast<int32_t>(cache.k.size()),
                group = c.num_heads / c.num_kv_heads;
  const Vector h = Norm(x, w.attention_norm, c.rms_eps);
  Vector q = Product(w.wq, h);
  cache.k.push_back(Product(w.wk, h));
  cache.v.push_back(Product(w.wv, h));
  for (int32_t i = 0; i < c.num_heads; ++i) Rotate(model, position, &q[i * c.head_dim]);
  for (int32_t i = 0; i < c.num_kv_heads; ++i)
    Rotate(model, position, &cache.k.back()[i * c.head_dim]);
  Vector heads;
  for (int32_t i = 0; i < c.num_heads; ++i) {
    const Vector out = AttendHead(&q[i * c.head_dim], cache.k, cache.v, i / group * c.head_dim, c);
    heads.insert(heads.end(), out.begin(), out.end());
  }
  const Vector o = Product(w.wo, heads);
  for (size_t i = 0; i < x.size(); ++i) x[i] += o[i];
  const Vector f = Norm(x, w.ffn_norm, c.rms_eps);
  Vector gate = Product(w.gate, f);
  const Vector up = Product(w.up, f);
  for (size_t i = 0; i < gate.size(); ++i) gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
  const Vector down = Product(w.down, gate);
  for (size_t i = 0; i < x.size(); ++i) x[i] += down[i];
}

ModelConfig ConfigOf(const TinyModelOptions& o) {
  ModelConfig c;
  c.architecture = "llama";
  c.vocab_size = o.vocab;
  c.hidden_size = o.hidden;
  c.num_layers = o.layers;
  c.num_heads = o.heads;
  c.num_kv_heads = o.kv_heads;
  c.head_dim = o.head_dim;
  c.ffn_size = o.ffn;
  c.context_tokens = o.context_tokens;
  c.rms_eps = 1e-5f;
  c.attention_scale = 1.0f / std::sqrt(static_cast<float>(o.head_dim));
  c.rope_kind = o.rope_kind;
  c.rope_dims = o.head_dim;
  c.rope_theta = 10000.0f;
  return c;
}

}  // namespace

TinyModel MakeTinyModel(const TinyModelOptions& o) {
  TinyModel model;
  model.config = ConfigOf(o);
  auto arena = Arena::Create(size_t{32} << 20);
  CHECK(arena.ok()) << arena.status();
  model.arena = *std::move(arena);
  Builder build(o.seed, model.arena);
  ModelWeights& w = model.weights;
  w.embedding = build.Matrix(o.embedding, o.vocab, o.hidden);
  const int32_t q = o.heads * o.head_dim, kv = o.kv_heads * o.head_dim;
  for (int32_t i = 0; i < o.layers; ++i) {
    LayerWeights& layer = w.layers.emplace_back();
    layer.attention_norm = build.Uniform(o.hidden, 0.5f, 1.5f);
    layer.wq = build.Matrix(o.linear, q, o.hidden);
    layer.wk = build.Matrix(o.linear, kv, o.hidden);
    layer.wv = build.Matrix(o.linear, kv, o.hidden);
    layer.wo = build.Matrix(o.linear, o.hidden, q);
    layer.ffn_norm = build.Uniform(o.hidden, 0.5f, 1.5f);
    layer.gate = build.Matrix(o.linear, o.ffn, o.hidden);
    layer.up = build.Matrix(o.linear, o.ffn, o.hidden);
    layer.down = build.Matrix(o.linear, o.hidden, o.ffn);
  }
  w.output_norm = build.Uniform(o.hidden, 0.5f, 1.5f);
  w.lm_head = o.tied ? w.embedding : build.Matrix(o.linear, o.vocab, o.hidden);
  if (o.rope_factors) w.rope_factors = build.Uniform(o.head_dim / 2, 1.0f, 4.0f);
  return model;
}

std::vector<std::vector<double>> ReferenceLogits(const TinyModel& model,
                                                 std::span<const TokenId> tokens) {
  std::vector<Cache> caches(model.config.num_layers);
  std::vector<std::vector<double>> logits;
  for (const TokenId token : tokens) {
    Vector x = Row(model.weights.embedding, static_cast<int32_t>(token));
    for (int32_t i = 0; i < model.config.num_layers; ++i) Layer(model, i, caches[i], x);
    logits.push_back(
        Product(model.weights.lm_head, Norm(x, model.weights.output_norm, model.config.rms_eps)));
  }
  return logits;
}

std::vector<TokenId> RandomTokens(const ModelConfig& config, int32_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<TokenId> tokens(count);
  for (TokenId& t : tokens) t = TokenId{static_cast<int32_t>(random() % config.vocab_size)};
  return tokens;
}

}  // namespace quire
