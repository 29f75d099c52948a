"""Copies the scheduler's sources and plants bugs in the copy: plant_bugs.py SOURCE_DIR TARGET_DIR.

Bug N is on while the global `planted_bug` is N (planted_bugs_test.cc sets it, and names them). A text that is not found
exactly once stops the build: the plants follow the code.
"""
import pathlib
import sys

# (number, file, text, text with the bug)
PLANTS = [
    (1, "scheduler.cc", "  sequence.blocks.Release();\n", "  if (planted_bug != 1) sequence.blocks.Release();\n"),
    (2, "block_table.cc", "    blocks_.pop_back();\n",
     "    if (planted_bug == 2 && blocks_.size() == 3) pool_->Release(blocks_.back());\n    blocks_.pop_back();\n"),
    (3, "running_set.cc", "    if (!items_[i]->setbacks.pinned) return items_[i];\n",
     "    if (!items_[i]->setbacks.pinned) return planted_bug == 3 ? items_.front() : items_[i];\n"),
    (4, "sequence.cc", "  num_computed = 0;\n", "  if (planted_bug != 4) num_computed = 0;\n"),
    (5, "block_table.cc", "BlocksFor(tokens) - size()", "BlocksFor(planted_bug == 5 ? tokens - 1 : tokens) - size()"),
    (6, "scheduler.cc", "  if (first.ended()) return;", "  if (planted_bug != 6 && first.ended()) return;"),
    (7, "step_planner.cc", "ShareBudget(uncomputed_, granting_, budget_, shares_of_step_)",
     "ShareBudget(uncomputed_, granting_, budget_ + (planted_bug == 7), shares_of_step_)"),
    (8, "sequence.cc", "  ++setbacks.preemptions;\n", "  ++setbacks.preemptions;\n  if (planted_bug == 8) order += 1000000;\n"),
    (9, "scheduler.cc", "  for (Sequence* sequence : waiting.items()) check(*sequence);\n",
     "  if (planted_bug != 9)\n    for (Sequence* sequence : waiting.items()) check(*sequence);\n"),
    (10, "scheduler.cc", "  ++sequences_finished;\n", "  sequences_finished += planted_bug == 10 ? 2 : 1;\n"),
    (11, "batch_builder.cc", "block * kBlockTokens + position % kBlockTokens}",
     "block * kBlockTokens + (position + (planted_bug == 11 && position > 70)) % kBlockTokens}"),
    (12, "batch_builder.cc", "                      .position = position,\n",
     "                      .position = position + (planted_bug == 12 ? static_cast<int32_t>(specs_.size()) : 0),\n"),
    (13, "scheduler.cc", "    event.finish = sequence->ending;\n",
     "    event.finish = sequence->ending;\n    if (planted_bug == 13) events.push_back(TokenEvent(event));\n"),
    (14, "step_planner.cc", "    if (sequence->paused) continue;\n    places +=",
     "    if (planted_bug != 14 && sequence->paused) continue;\n    places +="),
    (15, "step_budget.cc", "if (!grants.empty()) grant", "if (planted_bug != 15 && !grants.empty()) grant"),
    (16, "step_planner.cc", "  if (blocks_.preempted().empty()) Admit(now);",
     "  if (blocks_.preempted().empty() || planted_bug == 16) Admit(now);"),
    (17, "stop_rules.cc", "num_output >= rules.max_tokens", "num_output >= rules.max_tokens + (planted_bug == 17)"),
    (18, "scheduler.cc", "  sequence.num_computed = end;\n",
     "  sequence.num_computed = end;\n  if (planted_bug == 18 && sequence.uncomputed() > 1) --sequence.num_computed;\n"),
    (19, "stop_rules.h", "num_output < rules.min_tokens", "num_output + (planted_bug == 19) < rules.min_tokens"),
    (20, "scheduler.cc", "  for (Sequence& sequence : found->second->sequences) state_->End(sequence, reason);\n",
     "  for (Sequence& sequence : found->second->sequences) {\n"
     "    if (planted_bug == 20 && sequence.paused) continue;\n    state_->End(sequence, reason);\n  }\n"),
    (21, "sequence.h", "return {request->cache_domain,", "return {planted_bug == 21 ? CacheDomain{} : request->cache_domain,"),
    (22, "prefix_index.cc", "        std::ranges::equal(TokensOf(i), tokens)) {",
     "        (planted_bug == 22 || std::ranges::equal(TokensOf(i), tokens))) {"),
    (23, "block_planner.cc", "  return pool_.ref_count(tail) > 1 || pool_.findable(tail);",
     "  return planted_bug != 23 && (pool_.ref_count(tail) > 1 || pool_.findable(tail));"),
    (24, "block_planner.cc", "  sequence.blocks.Grow(end);\n",
     "  sequence.blocks.Grow(end);\n"
     "  if (planted_bug == 24) {\n    const int32_t before = std::exchange(sequence.num_computed, end);\n"
     "    cache_.PublishFull(sequence, before);\n    sequence.num_computed = before;\n  }\n"),
    (25, "prefix_cache.h", "!sequence.request->cache_bypass", "(planted_bug == 25 || !sequence.request->cache_bypass)"),
    (26, "prefix_cache.cc", "tokens.first(tokens.size() - 1)", "tokens.first(tokens.size() - (planted_bug != 26))"),
    (27, "sequence.cc", "  blocks.Release();\n", "  if (planted_bug != 27) blocks.Release();\n"),
    (28, "scheduler.cc", "    s.CloseFinished(*sequence);\n  }\n",
     "    if (planted_bug != 28 || sequence->started) s.CloseFinished(*sequence);\n  }\n"),
    (29, "step_planner.cc", "head.setbacks.bypasses < options_.queue.max_bypasses",
     "(planted_bug == 29 || head.setbacks.bypasses < options_.queue.max_bypasses)"),
    (30, "scheduler_books.cc", "         std::ranges::any_of(state_->waiting.items(), active);",
     "         (planted_bug != 30 && std::ranges::any_of(state_->waiting.items(), active));"),
    (31, "scheduler_books.cc", "  std::ranges::for_each(state_->waiting.items(), consider);",
     "  if (planted_bug != 31) std::ranges::for_each(state_->waiting.items(), consider);"),
    (32, "block_planner.cc", "victim->level >= head.priority", "victim->level - (planted_bug == 32) >= head.priority"),
    (32, "step_planner.cc", "other->level < head.priority", "other->level - (planted_bug == 32) < head.priority"),
    (33, "block_planner.cc", "victim.setbacks.pinned = victim", "victim.setbacks.pinned = planted_bug != 33 && victim"),
    (34, "admission_order.cc", "a.level > b.level", "(planted_bug == 34 ? a.level < b.level : a.level > b.level)"),
    (35, "prefix_index.cc", "    if (node.scope == scope) {\n      const int32_t common",
     "    if (planted_bug == 35 || node.scope == scope) {\n      const int32_t common"),
    (36, "scheduler.cc", "cache.Withdraw(sequence);", "(void)(planted_bug == 36 || (cache.Withdraw(sequence), true));"),
    (37, "admission_order.cc", "return had_a < had_b;", "return planted_bug == 37 ? had_a > had_b : had_a < had_b;"),
    (38, "fair_share.cc", "kOutputCost / At(tenant).weight", "kOutputCost / (planted_bug == 38 ? 1 : At(tenant).weight)"),
    (39, "fair_share.cc", "= std::max(charged(tenant), least)", "= planted_bug == 39 ? charged(tenant) : std::max(charged(tenant), least)"),
    (40, "step_planner.cc", "  if (!head.started) {\n", "  if (!head.started || planted_bug == 40) {\n"),
]


def main(source: pathlib.Path, target: pathlib.Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    texts = {f.name: f.read_text() for f in source.iterdir() if f.suffix in (".h", ".cc")}
    planted = set()
    for number, name, before, after in PLANTS:
        if texts[name].count(before) != 1:
            sys.exit(f"plant {number}: its text occurs {texts[name].count(before)} times in {name}")
        texts[name] = texts[name].replace(before, after)
        planted.add(name)
    for name, text in texts.items():
        if name in planted:
            text = text.replace("namespace quire {\n", "extern int planted_bug;\nnamespace quire {\n", 1)
        (target / name).write_text(text)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
