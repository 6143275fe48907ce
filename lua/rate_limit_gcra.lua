#!lua flags=allow-oom
-- GCRA: permits of one smooth limit with a burst, for any number of tasks at once. In any interval of length W at
-- most burst + W / (period / limit) are granted. Who is denied is booked one emission interval after the one before,
-- and newcomers queue behind whoever was booked.
-- KEYS  1 state: hash {tat = theoretical arrival time µs, next = time µs the next denied task is booked for}
-- ARGV  1 permits a period  2 period ms  3 returning tasks (denied before)  4 new tasks  5 burst
-- returns {now ms, granted to returning, granted to new, due ms of each denied: returning first}
--@include types
local limit, period = tonumber(ARGV[1]), tonumber(ARGV[2]) * 1000
local returning, fresh, burst = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local bad = wrong_type(KEYS[1], 'hash')
if bad then return bad end

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local interval = period / limit
local tolerance = (burst - 1) * interval
local saved = redis.call('HMGET', KEYS[1], 'tat', 'next')
local arrival, next_booked = tonumber(saved[1] or 0), tonumber(saved[2] or 0)

local function grant(wanted)
  local granted = 0
  while granted < wanted and math.max(arrival, now) - now <= tolerance do
    arrival = math.max(arrival, now) + interval
    granted = granted + 1
  end
  return granted
end
local to_returning = grant(returning)
local to_fresh = next_booked > now and 0 or grant(fresh)

local reply = {math.floor(now / 1000), to_returning, to_fresh}
for _ = 1, returning - to_returning + fresh - to_fresh do
  local at = math.max(next_booked, arrival - tolerance, now)
  next_booked = at + interval
  reply[#reply + 1] = math.ceil(at / 1000)
end

redis.call('HSET', KEYS[1], 'tat', string.format('%.3f', arrival), 'next', string.format('%.3f', next_booked))
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.ceil((math.max(arrival, next_booked) - now + period) / 1000)))
return reply
