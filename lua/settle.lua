#!lua flags=allow-oom
-- Write a batch of outcomes: take each task from the run's own list and put it where it belongs.
-- KEYS  1 scheduled  2 pending  3 recovered  4 suspects  5 dead  6 totals  7 limit
--       8, 9, 10 processing 0, 1, 2 of the run  11… deduplication keys the batch names
-- ARGV  1 run  2 how many  then 11 for each task:
--   1 own list (0, 1, 2)   2 the task exactly as it is stored there   3 ack | schedule | return | dead
--   4 what to store instead ('' = unchanged)   5 schedule: delay ms; dead: reason   6 dead: error
--   7 totals to increment, separated by spaces; the first word is the type   8 duration µs (-1 = not run)
--   9 queue latency ms (-1 = not a first attempt)   10 window of the queue-wide permit to refund ('' = none)
--   11 ack: '<n> <id>': delete KEYS[n] if it still holds id ('' = none)
-- returns {now ms, length of own list 0, 1, 2, one '1' (settled) or '0' (not in the own list: nothing changed) a task}
--@include clock
--@include types
--@include rights
local WIDTH = 11
local count = tonumber(ARGV[2])
local origin = {KEYS[2], KEYS[3], KEYS[4]}

local bad = wrong_type(KEYS[1], 'zset') or wrong_type(KEYS[2], 'list') or wrong_type(KEYS[3], 'list')
  or wrong_type(KEYS[4], 'list') or wrong_type(KEYS[5], 'stream') or wrong_type(KEYS[8], 'list')
  or wrong_type(KEYS[9], 'list') or wrong_type(KEYS[10], 'list')
  or no_right('ZADD', KEYS[1], 0, '') or no_right('RPUSH', KEYS[2], '') or no_right('XADD', KEYS[5], '*', '', '')
if bad then return bad end
if #ARGV ~= 2 + count * WIDTH then return redis.error_reply('ERR settle: arguments do not add up') end

-- What cannot be written must not be taken either.
local function sound(at)
  local verb = ARGV[at + 3]
  return origin[(tonumber(ARGV[at + 1]) or 3) + 1] and tonumber(ARGV[at + 8]) and tonumber(ARGV[at + 9])
    and (verb == 'ack' or verb == 'return' or verb == 'dead'
      or verb == 'schedule' and ARGV[at + 4] ~= '' and tonumber(ARGV[at + 5]))
end
for i = 1, count do
  if not sound(2 + (i - 1) * WIDTH) then return redis.error_reply('ERR settle: outcome ' .. i .. ' makes no sense') end
end

local now = now_ms()
local settled, tallies, durations, latency, refunds = {}, {}, {}, 0, {}
for i = 1, count do
  local at = 2 + (i - 1) * WIDTH
  local n, entry, verb = tonumber(ARGV[at + 1]), ARGV[at + 2], ARGV[at + 3]
  -- The ack, the fence against a run that was reaped, and what makes a repeat harmless.
  if redis.call('LREM', KEYS[8 + n], -1, entry) == 0 then
    settled[i] = '0'
  else
    settled[i] = '1'
    local stored = ARGV[at + 4]
    if verb == 'schedule' then
      redis.call('ZADD', KEYS[1], string.format('%.0f', now + tonumber(ARGV[at + 5])), stored)
    elseif verb == 'return' then
      redis.call('RPUSH', origin[n + 1], stored ~= '' and stored or entry)
    elseif verb == 'dead' then
      if stored == '' then stored = n == 0 and entry or string.gsub(entry, '^%d', '') end
      redis.call('XADD', KEYS[5], '*', 'task', stored, 'reason', ARGV[at + 5], 'error', ARGV[at + 6],
        'run', ARGV[1], 'at', string.format('%.0f', now))
    elseif ARGV[at + 11] ~= '' then
      local index, id = string.match(ARGV[at + 11], '^(%d+) (.*)$')
      local key = KEYS[tonumber(index)]
      if redis.pcall('GET', key) == id then redis.call('DEL', key) end
    end
    local tally = ARGV[at + 7]
    tallies[tally] = (tallies[tally] or 0) + 1
    local duration, waited = tonumber(ARGV[at + 8]), tonumber(ARGV[at + 9])
    if duration >= 0 then durations[tally] = (durations[tally] or 0) + duration end
    if waited > 0 then latency = latency + waited end
    local window = ARGV[at + 10]
    if window ~= '' then refunds[window] = (refunds[window] or 0) + 1 end
  end
end

-- Counting comes last and never fails the batch: the moves above are done.
for tally, times in pairs(tallies) do
  local kind
  for field in string.gmatch(tally, '%S+') do
    if kind then redis.pcall('HINCRBY', KEYS[6], field, times) else kind = field end
  end
  if durations[tally] then
    redis.pcall('HINCRBY', KEYS[6], 'duration_sum_us:' .. kind, string.format('%.0f', durations[tally]))
  end
end
if latency > 0 then redis.pcall('HINCRBY', KEYS[6], 'latency_sum_ms', string.format('%.0f', latency)) end
for window, times in pairs(refunds) do
  -- A window that is over has nothing to give back.
  if redis.pcall('HGET', KEYS[7], 'w') == window then
    local taken = tonumber(redis.pcall('HGET', KEYS[7], 'n')) or 0
    redis.pcall('HINCRBY', KEYS[7], 'n', -math.min(times, taken))
  end
end
return {now, redis.call('LLEN', KEYS[8]), redis.call('LLEN', KEYS[9]), redis.call('LLEN', KEYS[10]),
  table.concat(settled)}
