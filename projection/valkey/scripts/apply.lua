-- Makes a batch visible as one unit, if the projection stands where the batch begins (or within it).
-- KEYS: head. ARGV: epoch, after, last, summary, last ticket, last handle, channel, then the writes:
--   r <key> <offset> <bytes>   s <key> <bytes>   d <key>
local head = redis.call('HMGET', KEYS[1], 'incarnation', 'epoch', 'seq')
if not head[1] then return 'gap' end
if tonumber(ARGV[1]) < tonumber(head[2]) then return 'stale' end
local seq = tonumber(head[3])
if tonumber(ARGV[2]) > seq then return 'gap' end
if tonumber(ARGV[3]) <= seq then return 'seen' end

local base = string.sub(KEYS[1], 1, -5) .. head[1] .. ':'
local i = 8
while ARGV[i] do
	local key = base .. ARGV[i + 1]
	if ARGV[i] == 'r' then
		redis.call('SETRANGE', key, ARGV[i + 2], ARGV[i + 3])
		i = i + 4
	elseif ARGV[i] == 's' then
		redis.call('SET', key, ARGV[i + 2])
		i = i + 3
	else
		redis.call('UNLINK', key)
		i = i + 2
	end
end
redis.call('HSET', KEYS[1], 'epoch', ARGV[1], 'seq', ARGV[3], 'summary', ARGV[4], 't', ARGV[5], 'q', ARGV[6])
redis.call('SPUBLISH', ARGV[7], ARGV[3])
return 'ok'
