#!lua flags=allow-oom
-- Fixed window: permits of one limit, checked, counted and expired atomically, for any number of tasks at once.
-- Windows are aligned to Redis TIME. Who is denied is booked into the next window with room, and newcomers queue
-- behind whoever was booked, so nobody is overtaken for ever; a booking takes no permit until its task is back.
-- KEYS  1 state: hash {w = window, n = granted in it, b = of these to returning tasks, bw = last booked window,
--                      bn = booked in that}
-- ARGV  1 permits a window  2 period ms  3 returning tasks (denied before)  4 new tasks
-- returns {now ms, granted to returning, granted to new, due ms of each denied: returning first}
--@include clock
--@include types
local limit, period = tonumber(ARGV[1]), tonumber(ARGV[2])
local returning, fresh = tonumber(ARGV[3]), tonumber(ARGV[4])
local now = now_ms()
local bad = wrong_type(KEYS[1], 'hash')
if bad then return bad end

local saved = redis.call('HMGET', KEYS[1], 'w', 'n', 'b', 'bw', 'bn')
local function number(i) return tonumber(saved[i] or 0) end
-- A clock that went back must not open a window that was used up already.
local window = math.max(math.floor(now / period), number(1))
local granted, back = 0, 0
if number(1) == window then granted, back = number(2), number(3) end
local booked_window, booked = number(4), number(5)
if booked_window < window then booked_window, booked = window, 0 end

local free = math.max(0, limit - granted)
local to_returning = math.min(returning, free)
free, back = free - to_returning, back + to_returning

local expected = booked_window > window and limit or math.max(0, booked - back)
local to_fresh = math.min(fresh, math.max(0, free - expected))

local reply = {now, to_returning, to_fresh}
for _ = 1, returning - to_returning + fresh - to_fresh do
  if booked_window <= window then booked_window, booked = window + 1, 0 end
  if booked >= limit then booked_window, booked = booked_window + 1, 0 end
  booked = booked + 1
  reply[#reply + 1] = booked_window * period
end

local function text(value) return string.format('%.0f', value) end
redis.call('HSET', KEYS[1], 'w', text(window), 'n', text(granted + to_returning + to_fresh), 'b', text(back),
  'bw', text(booked_window), 'bn', text(booked))
redis.call('PEXPIRE', KEYS[1], text((booked_window + 2) * period - now))
return reply
