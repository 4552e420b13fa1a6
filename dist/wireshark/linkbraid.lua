-- SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
--
-- Dissectors for Wireshark and tshark (tried with 4.0, Lua 5.2) of what linkbraid sends:
--
--   arpplus    ARP+ messages and probes            EtherType 0x88B5    docs/arp-plus.md, sections 1 to 15
--   lbmirror   frames that travel over two lanes   EtherType 0x88B6    docs/arp-plus.md, section 16
--   lbfabric   a fabric over UDP                   any UDP port        docs/fabric.md
--
-- Each is written from these documents alone and shares nothing with the program. An expert info says where a message breaks a
-- rule. Its filter tells what follows from that:
--
--   *.refused.NAME     a receiver must refuse the message; where it counts the reason, NAME is that of the counter
--   *.forbidden.NAME   a sender must not send this, though a receiver may take it
--   *.note.NAME        a remark
--
-- The numbers in parentheses are those of clauses.

local ETHERTYPE_ARP_PLUS, ETHERTYPE_MIRROR = 0x88B5, 0x88B6
local ETHERNET_HEADER, ETHERNET_MIN = 14, 60

---------------------------------------------------------------------------------------------------------------------------
-- What all share

local SEVERITY = { refused = expert.severity.ERROR, forbidden = expert.severity.WARN, note = expert.severity.NOTE }

-- Registers the expert infos of a protocol: texts by kind and name. Gives them by kind and name, too.
local function register_experts(proto, texts)
  local experts, list = {}, {}
  for kind, of_kind in pairs(texts) do
    experts[kind] = {}
    for name, text in pairs(of_kind) do
      local abbreviation = proto.name:lower() .. "." .. kind .. "." .. name
      local one = ProtoExpert.new(abbreviation, text, expert.group.PROTOCOL, SEVERITY[kind])
      experts[kind][name] = one
      list[#list + 1] = one
    end
  end
  proto.experts = list
  return experts
end

-- Registers fields, and gives the same table.
local function register_fields(proto, fields)
  local list = {}
  for _, field in pairs(fields) do list[#list + 1] = field end
  proto.fields = list
  return fields
end

-- Two generations of remembered values: bounded, and what was remembered last is there for a while.
local REMEMBERED_MAX = 65536

local function memory() return { new = {}, old = {}, count = 0 } end

local function remember(of, key, value)
  if of.count == REMEMBERED_MAX then of.new, of.old, of.count = {}, of.new, 0 end
  of.new[key] = value
  of.count = of.count + 1
end

local function recall(of, key)
  local value = of.new[key]
  if value == nil then value = of.old[key] end
  return value
end

local function is_zero(bytes) return bytes == ("\0"):rep(#bytes) end

-- A MAC that one interface can have.
local function is_host_mac(bytes) return bytes:byte(1) % 2 == 0 and not is_zero(bytes) end

-- An IP address that one host can have (2.3).
local function is_host_address(bytes)
  if is_zero(bytes) then return false end
  local first = bytes:byte(1)
  if #bytes == 4 then return not (first >= 224 and first < 240) and bytes ~= "\255\255\255\255" end
  return first ~= 255
end

-- A cursor over the bytes [at, last) of `tvb`.
local function cursor(tvb, at, last) return { tvb = tvb, at = at, last = last } end

-- The next `count` bytes, at least one; nil if there are fewer.
local function take(c, count)
  if c.at + count > c.last then return nil end
  local range = c.tvb(c.at, count)
  c.at = c.at + count
  return range
end

-- All that is left; nil if nothing is.
local function rest(c)
  if c.at >= c.last then return nil end
  return take(c, c.last - c.at)
end

-- A message that is dissected: its tree, what was noticed, and whether the capture has only a part of it.
local function message(experts, root, tvb)
  return { experts = experts, root = root, cut = tvb:len() < tvb:reported_len(), reasons = {} }
end

local function refuse(m, name, item)
  local where = item or m.root
  where:add_proto_expert_info(m.experts.refused[name])
  m.reasons[#m.reasons + 1] = name
end

local function forbid(m, name, item) (item or m.root):add_proto_expert_info(m.experts.forbidden[name]) end

local function note(m, name, item) (item or m.root):add_proto_expert_info(m.experts.note[name]) end

-- Bytes are missing: in the message, or only in the capture.
local function ends(m, name, item)
  if not m.cut then
    refuse(m, name, item)
  elseif not m.cut_noted then
    note(m, "cut", item)
    m.cut_noted = true
  end
end

local function summary(m, text)
  if #m.reasons > 0 then text = text .. " [refused: " .. table.concat(m.reasons, ", ") .. "]" end
  return text
end

-- The Ethernet header in front of these bytes: source and destination as bytes, its length, and the VLAN, 0 if none. nil where the
-- capture has another kind of header.
local eth_source, eth_destination, vlan_id = Field.new("eth.src"), Field.new("eth.dst"), Field.new("vlan.id")

local function ethernet()
  local sources, destinations = { eth_source() }, { eth_destination() }
  local source, destination = sources[#sources], destinations[#destinations]
  if not source or not destination then return nil end
  local header = { source = source.range:raw(), destination = destination.range:raw(), vlan = 0, length = ETHERNET_HEADER }
  for _, id in ipairs({ vlan_id() }) do
    if id.offset > source.offset then
      header.length = header.length + 4
      if id.value ~= 0 then header.vlan = id.value end
    end
  end
  return header
end

-- Has another dissector, or the one of a table for `pattern`, show what is in here. What is malformed for it is shown as such, and
-- is no error of ours.
local function pass_on(to, tvb, pinfo, tree, pattern)
  if pattern then
    pcall(to.try, to, pattern, tvb, pinfo, tree)
  else
    pcall(to.call, to, tvb, pinfo, tree)
  end
end

---------------------------------------------------------------------------------------------------------------------------
-- ARP+

local arp = Proto("arpplus", "ARP+")

local BROADCAST, REPLY, CHANGE, CLEAR, PROBE, PROBE_REPLY = 1, 2, 3, 4, 5, 6
local TYPES = {
  [BROADCAST] = "BROADCAST", [REPLY] = "REPLY", [CHANGE] = "CHANGE", [CLEAR] = "CLEAR",
  [PROBE] = "PROBE", [PROBE_REPLY] = "PROBE-REPLY",
}
local TLVS = {
  [0] = "END", "VERSION", "HOST", "SEQUENCE", "MEMBER", "MORE-ADDRESSES", "DIGEST", "AUTH", "PROBE", "CLASS", "FEATURES", "GUEST",
}
local STATES = { [0] = "down", "up" }
local VIEWS = { [0] = "UNJUDGED", "LOST", "INIT", "UP" }

local HARDWARE_MAX, ADDRESSES_MAX, GUESTS_MAX, GUEST_ADDRESSES_MAX, VLAN_MAX = 16, 32, 64, 8, 4094
local CLASSES_MAX, CLASS_NAME_MAX = 7, 15
-- Bytes of a message without its Ethernet header, and of the head of a PROBE with it.
local MESSAGE_MAX, PROBE_HEAD = 1500, 248

local a = register_fields(arp, {
  hlen = ProtoField.uint8("arpplus.hlen", "HLEN"),
  plen = ProtoField.uint8("arpplus.plen", "PLEN"),
  count = ProtoField.uint8("arpplus.count", "COUNT"),
  type = ProtoField.uint8("arpplus.type", "TYPE", base.DEC, TYPES),
  ipv4 = ProtoField.ipv4("arpplus.ipv4", "IP address"),
  ipv6 = ProtoField.ipv6("arpplus.ipv6", "IP address"),
  hardware = ProtoField.ether("arpplus.hardware", "Hardware address"),
  tlv_type = ProtoField.uint8("arpplus.tlv.type", "Type", base.DEC, TLVS),
  tlv_length = ProtoField.uint8("arpplus.tlv.length", "Length"),
  tlv_value = ProtoField.bytes("arpplus.tlv.value", "Value"),
  version = ProtoField.uint8("arpplus.version", "Version"),
  host = ProtoField.bytes("arpplus.host", "Host id"),
  epoch = ProtoField.uint64("arpplus.epoch", "Epoch"),
  sequence = ProtoField.uint32("arpplus.sequence", "Sequence"),
  member_index = ProtoField.uint8("arpplus.member.index", "Index"),
  member_state = ProtoField.uint8("arpplus.member.state", "State", base.DEC, STATES),
  member_weight = ProtoField.uint32("arpplus.member.weight", "Weight in Mbit/s"),
  member_class = ProtoField.uint8("arpplus.member.class", "Class"),
  more_length = ProtoField.uint8("arpplus.more.length", "Length of an address"),
  more_ipv4 = ProtoField.ipv4("arpplus.more.ipv4", "Address"),
  more_ipv6 = ProtoField.ipv6("arpplus.more.ipv6", "Address"),
  digest = ProtoField.uint64("arpplus.digest", "Digest", base.HEX),
  auth_key = ProtoField.uint32("arpplus.auth.key_id", "Key id", base.HEX),
  auth_tag = ProtoField.bytes("arpplus.auth.tag", "Tag"),
  auth_index = ProtoField.uint64("arpplus.auth.index", "Index", base.HEX),
  auth_counter = ProtoField.uint64("arpplus.auth.counter", "Counter"),
  auth_code = ProtoField.bytes("arpplus.auth.code", "Code"),
  nonce = ProtoField.uint64("arpplus.probe.nonce", "Nonce", base.HEX),
  echo = ProtoField.uint64("arpplus.probe.echo", "Echo", base.HEX),
  number = ProtoField.uint32("arpplus.probe.number", "Number"),
  view = ProtoField.uint8("arpplus.probe.view", "View", base.DEC, VIEWS),
  interval = ProtoField.uint32("arpplus.probe.interval", "Interval in microseconds"),
  multiplier = ProtoField.uint8("arpplus.probe.multiplier", "Multiplier"),
  challenge = ProtoField.bool("arpplus.probe.challenge", "Challenge or answer to one"),
  answers = ProtoField.framenum("arpplus.probe.answers", "Answers the PROBE in", base.NONE, frametype.REQUEST),
  took = ProtoField.relative_time("arpplus.probe.time", "Time since the PROBE"),
  class_number = ProtoField.uint8("arpplus.class.number", "Number"),
  class_flags = ProtoField.uint8("arpplus.class.flags", "Flags", base.HEX),
  class_borrow = ProtoField.bool("arpplus.class.borrow", "Others may borrow", 8, nil, 0x01),
  class_name = ProtoField.string("arpplus.class.name", "Name"),
  features = ProtoField.uint32("arpplus.features", "Features", base.HEX),
  features_mirror = ProtoField.bool("arpplus.features.mirror", "Accepts mirrored frames", 32, nil, 0x01),
  features_guests = ProtoField.bool("arpplus.features.guests", "Gives guests' frames their MACs back", 32, nil, 0x02),
  features_long = ProtoField.bool("arpplus.features.long_probes", "Reads PROBEs of any length", 32, nil, 0x04),
  features_intervals = ProtoField.bool("arpplus.features.intervals", "Knows that others may announce themselves seldom", 32, nil, 0x08),
  features_doublings = ProtoField.uint32("arpplus.features.doublings", "Announces each member every 2^n s: n", base.DEC, nil, 0xf0),
  guest_vlan = ProtoField.uint16("arpplus.guest.vlan", "VLAN"),
  guest_mac = ProtoField.ether("arpplus.guest.mac", "MAC"),
  guest_count = ProtoField.uint8("arpplus.guest.ipv4_count", "IPv4 addresses"),
  guest_ipv4 = ProtoField.ipv4("arpplus.guest.ipv4", "Address"),
  guest_ipv6 = ProtoField.ipv6("arpplus.guest.ipv6", "Address"),
  padding = ProtoField.bytes("arpplus.padding", "Ignored bytes"),
})

local arp_experts = register_experts(arp, {
  refused = {
    vlan = "The message is in a VLAN (1.1)",
    source_not_host = "The Ethernet source is a group or all zeros (1.2)",
    truncated = "The message ends inside the published part (2.8)",
    too_long = "The message is longer than 1500 bytes (2.8)",
    hardware_length = "HLEN is not 6 (2.2)",
    protocol_length = "PLEN is none of 0, 4 and 16 (2.3)",
    address_not_host = "The address is unspecified, a group or the limited broadcast (2.3, 3.6, 3.12)",
    no_hardware = "COUNT is 0 (2.4)",
    too_many_hardware = "COUNT is above 16 (2.4)",
    hardware_not_host = "The hardware address is a group or all zeros (2.5)",
    hardware_twice = "The hardware address occurs twice (2.5)",
    unknown_type = "The TYPE is unknown (2.7)",
    tlv_truncated = "The TLV reaches past the end of the message (2.8)",
    tlv_length = "The length is not one that this TLV can have (3.4)",
    tlv_value = "The value is not one that this field can have (3.4, 10.3)",
    tlv_twice = "A TLV of this type occurs twice (3.4, 3.10, 10.3)",
    tlv_missing = "A TLV that must be there is missing (3.4, 10.3)",
    version_zero = "The version is 0 (3.4, 10.3)",
    member_count = "There is not one MEMBER for each hardware address (3.5)",
    member_twice = "The index of a member occurs twice (3.5)",
    too_many_addresses = "There are more than 32 further addresses (3.6)",
    digest_mismatch = "The digest is not that of the mapping (3.7)",
    auth_not_last = "A TLV follows AUTH (3.8)",
    class_number = "The number of a class is not 1 to 7 (3.9)",
    class_name = "The name of a class is not 1 to 15 bytes of a-z, 0-9, - and _, or is 'rest' (3.9)",
    class_twice = "The number or the name of a class occurs twice (3.9)",
    guest_vlan = "The VLAN is above 4094 (3.12)",
    guest_mac = "The MAC of a guest is a group or all zeros (3.12)",
    guest_addresses = "A guest has no address, or more than 8 (3.12)",
    guest_twice = "A MAC or an address of a guest occurs twice in a VLAN (3.12)",
    too_many_guests = "There are more than 64 guests (3.12)",
    no_identity = "The message has neither a host id nor an IP address (7.1)",
    source_not_listed = "The Ethernet source is not among the hardware addresses (7.2)",
    probe_not_unicast = "The destination of a probe is a group or all zeros (10.1)",
    probe_hardware = "A probe has another hardware address than its Ethernet source, or several (10.2)",
  },
  forbidden = {
    padding = "The padding is not all zeros, or is missing (1.3, 10.4)",
    class_flags = "Flags are set that are to be sent as 0 (3.9)",
    not_to_all = "The message is not broadcast (5.1, 5.3, 5.6)",
    reply_to_many = "A REPLY is not unicast (5.8)",
    no_end = "A long PROBE has no END within its first 248 bytes (10.4)",
    auth_tag = "The tag is not one of 32 bytes, so that nobody who requires keys takes the message (15.1, 15.4)",
    number_zero = "The number of a probe is 0, and it is no challenge: it has no AUTH (15.7)",
  },
  note = {
    cut = "The capture has only the first part of the message",
    published_only = "The message has no TLVs: who does not allow published-only hosts refuses it (7.11)",
    unknown_tlv = "The type of the TLV is unknown: it is skipped (3.2)",
    unknown_class = "The message has no CLASS of this number: it counts as an unknown class (3.11)",
  },
})

-- PROBEs by source, destination and nonce, and what each PROBE-REPLY answers by the number of its frame.
local probes, answered = memory(), {}

-- FNV-1a, 64 bits (3.7).
local function fnv(bytes)
  local hash, prime = UInt64(0x84222325, 0xcbf29ce4), UInt64(0x000001b3, 0x00000100)
  for at = 1, #bytes do hash = hash:bxor(UInt64(bytes:byte(at))) * prime end
  return hash
end

-- An IP address of 4 or 16 bytes as one of two fields.
local function add_address(m, tree, fields, range)
  local bytes = range:raw()
  local item = tree:add(#bytes == 4 and fields[1] or fields[2], range)
  if not is_host_address(bytes) then refuse(m, "address_not_host", item) end
  return item, bytes
end

-- HLEN to the hardware addresses; whether what follows can be read.
local function published(m)
  local c, root = m.cursor, m.root
  local head = take(c, 4)
  if not head then return ends(m, "truncated") end
  local hlen_item, plen_item = root:add(a.hlen, head(0, 1)), root:add(a.plen, head(1, 1))
  local count_item, type_item = root:add(a.count, head(2, 1)), root:add(a.type, head(3, 1))
  local hlen, plen = head(0, 1):uint(), head(1, 1):uint()
  m.count, m.type = head(2, 1):uint(), head(3, 1):uint()
  m.plen, m.address, m.hardware = plen, "", {}
  m.is_probe = m.type == PROBE or m.type == PROBE_REPLY
  if not TYPES[m.type] then refuse(m, "unknown_type", type_item) end
  if m.count == 0 then refuse(m, "no_hardware", count_item) end
  if m.count > HARDWARE_MAX then refuse(m, "too_many_hardware", count_item) end
  if hlen ~= 6 then refuse(m, "hardware_length", hlen_item) end
  local known = plen == 0 or plen == 4 or plen == 16
  if not known then refuse(m, "protocol_length", plen_item) end
  if hlen ~= 6 or not known then return false end
  if plen > 0 then
    local range = take(c, plen)
    if not range then return ends(m, "truncated") end
    local _
    _, m.address = add_address(m, root, { a.ipv4, a.ipv6 }, range)
  end
  local seen = {}
  for at = 1, m.count do
    local range = take(c, 6)
    if not range then return ends(m, "truncated") end
    local item, mac = root:add(a.hardware, range), range:raw()
    if not is_host_mac(mac) then refuse(m, "hardware_not_host", item) end
    if seen[mac] then refuse(m, "hardware_twice", item) end
    seen[mac], m.hardware[at] = true, mac
  end
  m.lists = seen
  return true
end

-- Readers of the values of TLVs. Each gets the message, the item of the TLV, the value (nil if it is empty) and its length, and
-- shows what is not as the table of section 3 says.
local read = {}

local function bad_length(m, item, value)
  if value then item:add(a.tlv_value, value) end
  refuse(m, "tlv_length", item)
end

-- Whether the value has just that length.
local function exact(m, item, value, length, wanted)
  if length == wanted then return true end
  bad_length(m, item, value)
  return false
end

local function once(m, item, name)
  if m.seen[name] then refuse(m, "tlv_twice", item) end
  m.seen[name] = true
end

function read.VERSION(m, item, value, length)
  once(m, item, "VERSION")
  if not exact(m, item, value, length, 1) then return end
  local version = item:add(a.version, value)
  if value:uint() == 0 then refuse(m, "version_zero", version) end
end

function read.HOST(m, item, value, length)
  once(m, item, "HOST")
  if not exact(m, item, value, length, 24) then return end
  item:add(a.host, value(0, 16))
  item:add(a.epoch, value(16, 8))
  m.host = value:raw()
end

function read.SEQUENCE(m, item, value, length)
  once(m, item, "SEQUENCE")
  if not exact(m, item, value, length, 4) then return end
  item:add(a.sequence, value)
  m.sequence = value:uint()
end

function read.MEMBER(m, item, value, length)
  if not exact(m, item, value, length, 7) then return end
  local index = value(0, 1):uint()
  local index_item, state_item = item:add(a.member_index, value(0, 1)), item:add(a.member_state, value(1, 1))
  item:add(a.member_weight, value(2, 4))
  local class_item, class = item:add(a.member_class, value(6, 1)), value(6, 1):uint()
  if value(1, 1):uint() > 1 then refuse(m, "tlv_value", state_item) end
  if m.indexes[index] then refuse(m, "member_twice", index_item) end
  m.indexes[index] = true
  m.members[#m.members + 1] = value:raw()
  if class ~= 0 then m.member_classes[#m.member_classes + 1] = { number = class, item = class_item } end
end

read["MORE-ADDRESSES"] = function(m, item, value, length)
  local each = value and value(0, 1):uint()
  if (each ~= 4 and each ~= 16) or (length - 1) % each ~= 0 then return bad_length(m, item, value) end
  item:add(a.more_length, value(0, 1))
  for at = 1, length - 1, each do
    local address, bytes = add_address(m, item, { a.more_ipv4, a.more_ipv6 }, value(at, each))
    m.more[#m.more + 1] = bytes
    if #m.more == ADDRESSES_MAX + 1 then refuse(m, "too_many_addresses", address) end
  end
end

function read.DIGEST(m, item, value, length)
  once(m, item, "DIGEST")
  if not exact(m, item, value, length, 8) then return end
  m.digest_item, m.digest = item:add(a.digest, value), value:uint64()
end

function read.AUTH(m, item, value, length)
  once(m, item, "AUTH")
  if length < 4 or length > 36 then return bad_length(m, item, value) end
  item:add(a.auth_key, value(0, 4))
  if length > 4 then
    local tag = item:add(a.auth_tag, value(4, length - 4))
    if length == 36 then
      tag:add(a.auth_index, value(4, 8))
      tag:add(a.auth_counter, value(12, 8))
      tag:add(a.auth_code, value(20, 16))
    end
  end
  if length ~= 36 then forbid(m, "auth_tag", item) end
end

function read.PROBE(m, item, value, length)
  once(m, item, "PROBE")
  if not exact(m, item, value, length, 26) then return end
  local nonce, echo = item:add(a.nonce, value(0, 8)), item:add(a.echo, value(8, 8))
  local number = item:add(a.number, value(16, 4))
  local view = item:add(a.view, value(20, 1))
  local interval, multiplier = item:add(a.interval, value(21, 4)), item:add(a.multiplier, value(25, 1))
  m.probe = { nonce = value(0, 8):raw(), echo = value(8, 8):raw(), view = value(20, 1):uint(), number = value(16, 4):uint() }
  m.probe.item, m.probe.number_item = item, number
  if is_zero(m.probe.nonce) then refuse(m, "tlv_value", nonce) end
  if is_zero(m.probe.echo) and m.type == PROBE_REPLY then refuse(m, "tlv_value", echo) end
  if not VIEWS[m.probe.view] then refuse(m, "tlv_value", view) end
  if value(21, 4):uint() == 0 then refuse(m, "tlv_value", interval) end
  if value(25, 1):uint() == 0 then refuse(m, "tlv_value", multiplier) end
  if m.probe.number == 0 then item:add(a.challenge, value(16, 4), true):set_generated() end
end

function read.CLASS(m, item, value, length)
  if length < 2 then return bad_length(m, item, value) end
  local number, flags = value(0, 1):uint(), value(1, 1):uint()
  local number_item, flags_item = item:add(a.class_number, value(0, 1)), item:add(a.class_flags, value(1, 1))
  flags_item:add(a.class_borrow, value(1, 1))
  if number < 1 or number > CLASSES_MAX then refuse(m, "class_number", number_item) end
  if flags > 1 then forbid(m, "class_flags", flags_item) end
  local name, name_item = "", item
  if length > 2 then
    name = value(2, length - 2):raw()
    name_item = item:add(a.class_name, value(2, length - 2))
  end
  if length < 3 or length > 2 + CLASS_NAME_MAX then refuse(m, "tlv_length", item) end
  if #name < 1 or #name > CLASS_NAME_MAX or name:find("[^a-z0-9_-]") or name == "rest" then refuse(m, "class_name", name_item) end
  m.class_count = m.class_count + 1
  if m.classes[number] or m.class_names[name] or m.class_count > CLASSES_MAX then refuse(m, "class_twice", item) end
  m.classes[number], m.class_names[name] = true, true
end

function read.FEATURES(m, item, value, length)
  once(m, item, "FEATURES")
  if not exact(m, item, value, length, 4) then return end
  local features = item:add(a.features, value)
  for _, field in ipairs({ a.features_mirror, a.features_guests, a.features_long, a.features_intervals, a.features_doublings }) do features:add(field, value) end
end

function read.GUEST(m, item, value, length)
  if length < 9 then return bad_length(m, item, value) end
  local vlan, mac, count = value(0, 2):uint(), value(2, 6):raw(), value(8, 1):uint()
  local vlan_item, mac_item = item:add(a.guest_vlan, value(0, 2)), item:add(a.guest_mac, value(2, 6))
  item:add(a.guest_count, value(8, 1))
  local left = length - 9 - 4 * count
  if left < 0 or left % 16 ~= 0 then return bad_length(m, item, length > 9 and value(9, length - 9) or nil) end
  m.guest_count = m.guest_count + 1
  if m.guest_count == GUESTS_MAX + 1 then refuse(m, "too_many_guests", item) end
  if vlan > VLAN_MAX then refuse(m, "guest_vlan", vlan_item) end
  if not is_host_mac(mac) then refuse(m, "guest_mac", mac_item) end
  local key = vlan .. " " .. mac
  if m.guests[key] then refuse(m, "guest_twice", mac_item) end
  m.guests[key] = true
  local at, number = 9, 0
  while at < length do
    local bytes = number < count and 4 or 16
    local address_item, address = add_address(m, item, { a.guest_ipv4, a.guest_ipv6 }, value(at, bytes))
    key = vlan .. " " .. #address .. " " .. address
    if m.guest_addresses[key] then refuse(m, "guest_twice", address_item) end
    m.guest_addresses[key] = true
    at, number = at + bytes, number + 1
  end
  if number < 1 or number > GUEST_ADDRESSES_MAX then refuse(m, "guest_addresses", item) end
end

-- What a PROBE or PROBE-REPLY is read for (10.3); PROBE is for these only (3.2).
local OF_PROBES = { VERSION = true, HOST = true, PROBE = true, AUTH = true }

local function reader_of(m, name)
  if m.is_probe and not OF_PROBES[name] then return nil end
  if not m.is_probe and name == "PROBE" then return nil end
  return read[name]
end

-- The TLVs, up to END or the end of the message.
local function tlvs(m)
  local c, root = m.cursor, m.root
  while c.at < c.last do
    local first = c.at
    local type = c.tvb(first, 1):uint()
    if type == 0 then
      m.has_end = true
      root:add(c.tvb(first, 1), "END"):add(a.tlv_type, take(c, 1))
      return
    end
    local name = TLVS[type] or ("TLV " .. type)
    if m.seen.AUTH then return refuse(m, "auth_not_last", root:add(c.tvb(first, 1), name)) end
    local head = take(c, 2)
    if not head then return ends(m, "tlv_truncated", root:add(rest(c), name)) end
    local length = head(1, 1):uint()
    local value = length > 0 and take(c, length) or nil
    if length > 0 and not value then
      local item = root:add(c.tvb(first, c.last - first), name)
      item:add(a.tlv_type, head(0, 1))
      item:add(a.tlv_length, head(1, 1))
      c.at = c.last
      return ends(m, "tlv_truncated", item)
    end
    local item = root:add(c.tvb(first, 2 + length), name)
    item:add(a.tlv_type, head(0, 1))
    item:add(a.tlv_length, head(1, 1))
    local reader = reader_of(m, name)
    if reader then
      reader(m, item, value, length)
    else
      if value then item:add(a.tlv_value, value) end
      note(m, "unknown_tlv", item)
    end
  end
end

-- What no TLV can say by itself.
local function judge_mapping(m)
  if not m.seen.HOST or not m.seen.SEQUENCE then refuse(m, "tlv_missing") end
  if #m.members ~= m.count then refuse(m, "member_count") end
  for _, class in ipairs(m.member_classes) do
    if not m.classes[class.number] then note(m, "unknown_class", class.item) end
  end
  -- A message that is refused anyway has no mapping.
  if not m.digest or #m.reasons > 0 then return end
  local parts = { m.host, string.char(m.plen), m.address, string.char(m.count) }
  for _, list in ipairs({ m.hardware, m.members }) do
    for _, bytes in ipairs(list) do parts[#parts + 1] = bytes end
  end
  for _, address in ipairs(m.more) do parts[#parts + 1] = string.char(#address) .. address end
  if fnv(table.concat(parts)) ~= m.digest then refuse(m, "digest_mismatch", m.digest_item) end
end

local function judge_probe(m)
  if not m.seen.HOST or not m.seen.PROBE then refuse(m, "tlv_missing") end
  if m.probe and m.probe.number == 0 and not m.seen.AUTH then forbid(m, "number_zero", m.probe.number_item) end
end

-- What the Ethernet header must be.
local function judge_header(m)
  local header = m.header
  if not header then return end
  if header.vlan ~= 0 then refuse(m, "vlan") end
  local is_host = is_host_mac(header.source)
  if not is_host then refuse(m, "source_not_host") end
  if not m.lists then return end
  local to_all = header.destination == "\255\255\255\255\255\255"
  if m.is_probe then
    if not is_host_mac(header.destination) then refuse(m, "probe_not_unicast") end
    if m.count ~= 1 or not m.lists[header.source] then refuse(m, "probe_hardware") end
    return
  end
  if is_host and m.count > 0 and not m.lists[header.source] then refuse(m, "source_not_listed") end
  if m.type == REPLY and not is_host_mac(header.destination) then forbid(m, "reply_to_many") end
  if (m.type == CHANGE or m.type == CLEAR) and not to_all then forbid(m, "not_to_all") end
end

-- What is ignored behind the message, and whether the frame was to be padded with it.
local function judge_padding(m, tvb)
  local c = m.cursor
  local begin = c.at
  -- Behind the head of a long PROBE, too.
  c.last = tvb:len()
  local ignored = rest(c)
  local item = ignored and m.root:add(a.padding, ignored)
  if not m.header or m.cut then return end
  local length = m.header.length + tvb:reported_len()
  local is_long_probe = m.type == PROBE and length > PROBE_HEAD
  if length < ETHERNET_MIN then return forbid(m, "padding") end
  if is_long_probe and not m.has_end then forbid(m, "no_end") end
  if ignored and (length == ETHERNET_MIN or is_long_probe) and not is_zero(tvb(begin, tvb:len() - begin):raw()) then
    forbid(m, "padding", item)
  end
end

-- Shows which PROBE a PROBE-REPLY answers.
local function link_probes(m, pinfo)
  if not m.probe or not m.header or #m.reasons > 0 then return end
  local from, to, number = m.header.source, m.header.destination, pinfo.number
  if not pinfo.visited then
    if m.type == PROBE then
      remember(probes, from .. to .. m.probe.nonce, { frame = number, time = pinfo.rel_ts })
    else
      answered[number] = recall(probes, to .. from .. m.probe.echo)
    end
  end
  local request = answered[number]
  if m.type ~= PROBE_REPLY or not request then return end
  m.probe.item:add(a.answers, request.frame):set_generated()
  local took = math.max(pinfo.rel_ts - request.time, 0)
  local seconds = math.floor(took)
  m.probe.item:add(a.took, NSTime(seconds, math.floor((took - seconds) * 1e9 + 0.5))):set_generated()
end

local function arp_info(m)
  local text = TYPES[m.type] or ("type " .. m.type)
  if m.is_probe then
    if m.probe then
      text = text .. (m.probe.number == 0 and ", challenge" or ", number " .. m.probe.number)
      text = text .. ", " .. (VIEWS[m.probe.view] or ("view " .. m.probe.view))
    end
    return text
  end
  if #m.address == 4 then text = text .. " of " .. table.concat({ m.address:byte(1, 4) }, ".") end
  text = text .. ", " .. m.count .. (m.count == 1 and " member" or " members")
  if m.sequence then text = text .. ", sequence " .. m.sequence end
  if m.guest_count > 0 then text = text .. ", " .. m.guest_count .. (m.guest_count == 1 and " guest" or " guests") end
  if not m.seen.VERSION then text = text .. ", published-only" end
  return text
end

function arp.init() probes, answered = memory(), {} end

function arp.dissector(tvb, pinfo, tree)
  pinfo.cols.protocol = "ARP+"
  pinfo.cols.info = "ARP+"
  local root = tvb:len() > 0 and tree:add(arp, tvb()) or tree:add(arp)
  local m = message(arp_experts, root, tvb)
  m.header, m.cursor = ethernet(), cursor(tvb, 0, tvb:len())
  m.seen, m.members, m.indexes, m.member_classes, m.more = {}, {}, {}, {}, {}
  m.classes, m.class_names, m.class_count = {}, {}, 0
  m.guests, m.guest_addresses, m.guest_count = {}, {}, 0
  local is_readable = published(m)
  if m.type and m.type ~= PROBE and tvb:reported_len() > MESSAGE_MAX then refuse(m, "too_long") end
  if is_readable then
    local c = m.cursor
    local length = (m.header and m.header.length or ETHERNET_HEADER)
    if m.type == PROBE and length + tvb:reported_len() > PROBE_HEAD then
      -- All that may be said is in the head.
      local head = PROBE_HEAD - length
      if tvb:len() >= head then m.cut, c.last = false, math.max(head, c.at) end
    end
    if c.at < c.last and tvb(c.at, 1):uint() == 1 then
      tlvs(m)
      if m.cut and not m.has_end then ends(m) end
      if not m.cut_noted then
        if m.is_probe then judge_probe(m) else judge_mapping(m) end
      end
    elseif c.at >= c.last and m.cut then
      ends(m)
    elseif m.is_probe then
      refuse(m, "tlv_missing")
    else
      note(m, "published_only")
      if m.plen == 0 then refuse(m, "no_identity") end
    end
  end
  judge_header(m)
  if is_readable then
    m.cut = tvb:len() < tvb:reported_len()
    judge_padding(m, tvb)
    link_probes(m, pinfo)
  end
  if m.type then
    local text = summary(m, arp_info(m))
    root:append_text(", " .. text)
    pinfo.cols.info = text
  else
    pinfo.cols.info = summary(m, "ARP+")
  end
  return tvb:len()
end

DissectorTable.get("ethertype"):add(ETHERTYPE_ARP_PLUS, arp)

---------------------------------------------------------------------------------------------------------------------------
-- Mirrored frames

local mirror = Proto("lbmirror", "linkbraid mirrored frame")

local TRAILER, MIRROR_CLASS_MAX = 16, 7
-- EtherTypes that no mirrored frame has (16.3).
local NOT_MIRRORED = { [ETHERTYPE_ARP_PLUS] = true, [ETHERTYPE_MIRROR] = true, [0x8100] = true, [0x88A8] = true }
-- Below are lengths of IEEE 802.3.
local ETHERTYPE_MIN = 0x0600

local t = register_fields(mirror, {
  epoch = ProtoField.uint32("lbmirror.epoch", "Epoch", base.HEX),
  sequence = ProtoField.uint32("lbmirror.sequence", "Sequence"),
  ethertype = ProtoField.uint16("lbmirror.ethertype", "EtherType of the frame", base.HEX),
  class = ProtoField.uint8("lbmirror.class", "Class"),
  version = ProtoField.uint8("lbmirror.version", "Version"),
  balance = ProtoField.uint16("lbmirror.balance", "Balance", base.HEX),
  zero = ProtoField.uint16("lbmirror.zero", "Zero", base.HEX),
  copy = ProtoField.framenum("lbmirror.copy_of", "Copy of the frame in", base.NONE),
})

local mirror_experts = register_experts(mirror, {
  refused = {
    vlan = "A mirrored frame is in a VLAN (16.1)",
    short = "A mirrored frame has less than 76 bytes (16.1)",
    version = "The version is not 1 (16.2)",
    class = "The number of the class is above 7 (16.2)",
    sequence = "The sequence is 0 (16.2)",
    to_many = "The destination of a mirrored frame is a group (16.1)",
    zero = "The last two bytes are not 0 (16.2)",
    sum = "The sum of the trailer is not 0xffff (16.2)",
    ethertype = "A frame of this EtherType is not mirrored (16.3)",
  },
  forbidden = {},
  note = { cut = "The capture has only the first part of the frame, and not its trailer" },
})

-- Frames by source's epoch, class and sequence, and the copies by number.
local mirrored, copies = memory(), {}
local ethertypes, data = DissectorTable.get("ethertype"), Dissector.get("data")

-- The ones' complement sum of words (RFC 1071).
local function ones_sum(bytes)
  local sum = 0
  for at = 1, #bytes, 2 do sum = sum + bytes:byte(at) * 256 + bytes:byte(at + 1) end
  while sum > 0xffff do sum = sum % 65536 + math.floor(sum / 65536) end
  return sum
end

function mirror.init() mirrored, copies = memory(), {} end

function mirror.dissector(tvb, pinfo, tree)
  pinfo.cols.protocol = "mirrored"
  pinfo.cols.info = "mirrored frame"
  local length = tvb:len()
  local is_short = ETHERNET_HEADER + tvb:reported_len() < ETHERNET_MIN + TRAILER
  local at = length - TRAILER
  local is_here = not is_short and length == tvb:reported_len()
  local root = is_here and tree:add(mirror, tvb(at, TRAILER)) or tree:add(mirror)
  local m = message(mirror_experts, root, tvb)
  local header = ethernet()
  if header and header.vlan ~= 0 then refuse(m, "vlan") end
  if header and header.destination:byte(1) % 2 == 1 then refuse(m, "to_many") end
  if not is_here then
    if is_short then refuse(m, "short") else note(m, "cut") end
    pinfo.cols.info = summary(m, "mirrored frame")
    return length
  end
  root:add(t.epoch, tvb(at, 4))
  local sequence = root:add(t.sequence, tvb(at + 4, 4))
  local ethertype, class = root:add(t.ethertype, tvb(at + 8, 2)), root:add(t.class, tvb(at + 10, 1))
  local version, balance = root:add(t.version, tvb(at + 11, 1)), root:add(t.balance, tvb(at + 12, 2))
  local zero = root:add(t.zero, tvb(at + 14, 2))
  local protocol = tvb(at + 8, 2):uint()
  if tvb(at + 4, 4):uint() == 0 then refuse(m, "sequence", sequence) end
  if tvb(at + 10, 1):uint() > MIRROR_CLASS_MAX then refuse(m, "class", class) end
  if tvb(at + 11, 1):uint() ~= 1 then refuse(m, "version", version) end
  if tvb(at + 14, 2):uint() ~= 0 then refuse(m, "zero", zero) end
  if ones_sum(tvb(at, TRAILER):raw()) ~= 0xffff then refuse(m, "sum", balance) end
  if NOT_MIRRORED[protocol] then refuse(m, "ethertype", ethertype) end
  if #m.reasons > 0 then
    pinfo.cols.info = summary(m, "mirrored frame")
    return length
  end
  local key = tvb(at, 8):raw() .. tvb(at + 10, 1):raw() .. tvb(0, at):raw():sub(1, 64)
  if not pinfo.visited then
    local first = recall(mirrored, key)
    if first then copies[pinfo.number] = first else remember(mirrored, key, pinfo.number) end
  end
  if copies[pinfo.number] then root:add(t.copy, copies[pinfo.number]):set_generated() end
  root:append_text(string.format(", class %d, sequence %d", tvb(at + 10, 1):uint(), tvb(at + 4, 4):uint()))
  local inner = tvb(0, at):tvb()
  if protocol < ETHERTYPE_MIN then pass_on(data, inner, pinfo, tree) else pass_on(ethertypes, inner, pinfo, tree, protocol) end
  return length
end

ethertypes:add(ETHERTYPE_MIRROR, mirror)

---------------------------------------------------------------------------------------------------------------------------
-- The fabric over UDP

local fabric = Proto("lbfabric", "linkbraid fabric")

-- Datagrams (section 10, and 9.5).
local HEAD, NAME, TAG, PLAIN, ENCRYPTED = 16, 12, 16, 1, 2
local TRANSPORT_MAX, PARTS_MAX = 65792, 256
-- Messages (sections 2, 3 and 7 to 9).
local HEADER, CONTROL_MIN, CONTROL_MAX, VIRTIO, FRAME_MIN, FRAME_MAX = 32, 32, 256, 12, 14, 65557
local DATA, CONTROL = 1, 2
local HELLO, ACCEPT, ALIVE, BYE, REFUSE = 1, 2, 3, 4, 5
local NODES_MAX, STREAMS_MAX, MTU_MIN, MTU_MAX = 512, 64, 68, 65521
local FAST_PATH, FAST_PATH_BYTES, AUTH, AUTH_BYTES, ENCRYPTION, IN_USE = 0x4000, 8, 0x2000, 20, 0x1000, 0x0800

local KINDS = { [DATA] = "DATA", [CONTROL] = "CONTROL" }
local CONTROLS = { [HELLO] = "HELLO", [ACCEPT] = "ACCEPT", [ALIVE] = "ALIVE", [BYE] = "BYE", [REFUSE] = "REFUSE" }
local REASONS = {
  [0] = "none", "number of nodes", "MTU", "your number is taken", "number of queues", "encryption",
}
local GSO_TYPES = { [0] = "none", [1] = "TCP over IPv4", [3] = "UDP", [4] = "TCP over IPv6", [5] = "UDP segments" }

local f = register_fields(fabric, {
  instance = ProtoField.uint32("lbfabric.datagram.instance", "Instance", base.HEX),
  frame = ProtoField.uint32("lbfabric.datagram.number", "Number of the message"),
  form = ProtoField.uint8("lbfabric.datagram.version", "Version", base.DEC, { [PLAIN] = "plain", [ENCRYPTED] = "encrypted" }),
  total = ProtoField.uint24("lbfabric.datagram.total", "Bytes of the message"),
  size = ProtoField.uint16("lbfabric.datagram.size", "Bytes of each part"),
  index = ProtoField.uint16("lbfabric.datagram.index", "Number of the part"),
  part = ProtoField.bytes("lbfabric.datagram.bytes", "Bytes of the part"),
  key = ProtoField.uint32("lbfabric.encrypted.key_id", "Key id", base.HEX),
  number = ProtoField.uint64("lbfabric.encrypted.number", "Number of the datagram"),
  secret = ProtoField.bytes("lbfabric.encrypted.bytes", "Encrypted bytes"),
  tag = ProtoField.bytes("lbfabric.encrypted.tag", "Tag"),
  version = ProtoField.uint8("lbfabric.version", "Version"),
  kind = ProtoField.uint8("lbfabric.kind", "Kind", base.DEC, KINDS),
  sender = ProtoField.uint16("lbfabric.sender", "Sender"),
  receiver = ProtoField.uint16("lbfabric.receiver", "Receiver"),
  stream = ProtoField.uint16("lbfabric.stream", "Stream"),
  sender_epoch = ProtoField.uint64("lbfabric.sender_epoch", "Epoch of the sender", base.HEX),
  receiver_epoch = ProtoField.uint64("lbfabric.receiver_epoch", "Epoch of the receiver", base.HEX),
  sequence = ProtoField.uint32("lbfabric.sequence", "Sequence"),
  cookie_number = ProtoField.uint32("lbfabric.cookie_number", "Number of the cookie"),
  length = ProtoField.uint32("lbfabric.length", "Length"),
  type = ProtoField.uint8("lbfabric.type", "Type", base.DEC, CONTROLS),
  reason = ProtoField.uint8("lbfabric.reason", "Reason", base.DEC, REASONS),
  nodes = ProtoField.uint16("lbfabric.nodes", "Number of nodes"),
  mtu = ProtoField.uint32("lbfabric.mtu", "MTU"),
  interval = ProtoField.uint32("lbfabric.interval", "Interval in microseconds"),
  multiplier = ProtoField.uint8("lbfabric.multiplier", "Multiplier"),
  queues = ProtoField.uint8("lbfabric.queues", "Number of queues"),
  features = ProtoField.uint16("lbfabric.features", "Features", base.HEX),
  features_checksum = ProtoField.bool("lbfabric.features.checksum", "Takes frames without checksum", 16, nil, 0x0001),
  features_tcp = ProtoField.bool("lbfabric.features.tcp", "Takes TCP that is not segmented", 16, nil, 0x0002),
  features_udp = ProtoField.bool("lbfabric.features.udp", "Takes UDP that is not segmented", 16, nil, 0x0004),
  features_in_use = ProtoField.bool("lbfabric.features.in_use", "Uses the link", 16, nil, IN_USE),
  features_encryption = ProtoField.bool("lbfabric.features.encryption", "Encrypts frames", 16, nil, ENCRYPTION),
  features_auth = ProtoField.bool("lbfabric.features.auth", "A code follows", 16, nil, AUTH),
  features_fast_path = ProtoField.bool("lbfabric.features.fast_path", "A fast path follows", 16, nil, FAST_PATH),
  cookie = ProtoField.uint64("lbfabric.cookie", "Cookie", base.HEX),
  echo = ProtoField.uint64("lbfabric.echo", "Echo", base.HEX),
  answers = ProtoField.framenum("lbfabric.answers", "Answers the HELLO in", base.NONE, frametype.REQUEST),
  took = ProtoField.relative_time("lbfabric.time", "Time since the HELLO"),
  port = ProtoField.uint16("lbfabric.fast_path.port", "UDP port of VXLAN"),
  flags = ProtoField.uint8("lbfabric.fast_path.flags", "Flags", base.HEX),
  heard = ProtoField.bool("lbfabric.fast_path.heard", "HEARD", 8, nil, 0x01),
  group = ProtoField.uint16("lbfabric.fast_path.group", "Group"),
  network = ProtoField.uint24("lbfabric.fast_path.network", "VXLAN network identifier"),
  later = ProtoField.bytes("lbfabric.later", "Of a later version"),
  auth_key = ProtoField.uint32("lbfabric.auth.key_id", "Key id", base.HEX),
  auth_code = ProtoField.bytes("lbfabric.auth.code", "Code"),
  virtio_flags = ProtoField.uint8("lbfabric.virtio.flags", "Flags", base.HEX),
  virtio_type = ProtoField.uint8("lbfabric.virtio.gso_type", "Type of segments", base.HEX),
  virtio_header = ProtoField.uint16("lbfabric.virtio.hdr_len", "Bytes of headers"),
  virtio_size = ProtoField.uint16("lbfabric.virtio.gso_size", "Bytes of each segment"),
  virtio_start = ProtoField.uint16("lbfabric.virtio.csum_start", "Checksum from"),
  virtio_offset = ProtoField.uint16("lbfabric.virtio.csum_offset", "Checksum at"),
  virtio_buffers = ProtoField.uint16("lbfabric.virtio.num_buffers", "Buffers"),
})

local fabric_experts = register_experts(fabric, {
  refused = {
    datagram_short = "The datagram ends inside its head, or holds no byte of a message (10.2)",
    datagram_version = "The version of the datagram is neither 1 nor 2 (10.2)",
    datagram_total = "The number of bytes of the message is not 1 to 65,792 (10.3)",
    datagram_size = "The message has parts of no bytes, or more than 256 parts (10.3)",
    datagram_index = "The message has no part of this number (10.3)",
    datagram_bytes = "The datagram is longer or shorter than its part (10.3)",
    datagram_differs = "The numbers of the datagram are not those of earlier parts of the same message (10.3)",
    truncated = "The message ends inside a fixed field (2.1, 3.1, 7.1, 8.1)",
    version = "The version is not 1 (2.2)",
    kind = "The kind is neither DATA nor CONTROL (2.2)",
    node = "The number of a node is above 511 (2.3)",
    epoch = "The epoch is 0 (2.4, 3.7)",
    length = "The length is not one that this kind can have (2.5)",
    length_mismatch = "The length is not that of what follows (2.6)",
    stream = "The stream is above 63 (2.7)",
    control_type = "The type is unknown (3.2)",
    reason = "The reason is unknown, missing, or there where none may be (3.2, 3.3)",
    nodes = "The number of nodes is not 2 to 512 (3.4)",
    mtu = "The MTU is not 68 to 65,521 (3.4)",
    queues = "The number of queues is not 1 to 64 (3.4)",
    timing = "The interval or the multiplier is 0 (3.4)",
    cookie = "The cookie is 0, or the echo where it must not be (3.5)",
    short_cut = "The port, the group or the network of the fast path is 0 (7.2)",
  },
  forbidden = {
    sender = "The number of the sender is not below its number of nodes (1.2)",
    stream = "The stream of a control message is not 0 (2.7)",
    own_number = "The sender has the number of the receiver (1.2, 4.1)",
    fast_path = "A fast path is announced in another message than HELLO, ACCEPT or ALIVE, or not to a start that is up (7.1)",
    fast_path_encrypted = "A node that encrypts its frames announces a fast path (9.8)",
    not_encrypted = "A frame of a node that encrypts its frames is not encrypted (9.4)",
  },
  note = {
    cut = "The capture has only the first part of the datagram",
    joined = "The kernel had joined several datagrams when they were captured",
    incomplete = "A part of a message",
    encrypted = "Encrypted: what it holds cannot be shown",
    interval = "The interval is not 10 ms to 10 s: receivers take the nearest in range (5.1)",
    multiplier = "The multiplier is not 2 to 50: receivers take the nearest in range (5.1)",
    later = "A later version has put something here: it is ignored (3.6)",
  },
})

-- Messages of several parts that are not complete; what was completed, by frame and place; HELLOs by their cookie, and what answers
-- them; the starts that encrypt.
local parts, complete, hellos, hello_answered, encrypting = memory(), {}, memory(), {}, memory()
local plain_ethernet = Dissector.get("eth_withoutfcs")

function fabric.init() parts, complete, hellos, hello_answered, encrypting = memory(), {}, memory(), {}, memory() end

-- The head of a datagram; nil if it is too short for one.
local function head_at(tvb, at)
  if at + HEAD > tvb:len() then return nil end
  local range = tvb(at, HEAD)
  local head = {
    version = range(8, 1):uint(), total = range(9, 3):uint(), size = range(12, 2):uint(), index = range(14, 2):uint(),
    key = range(0, 8):raw(),
  }
  head.is_sound = (head.version == PLAIN or head.version == ENCRYPTED) and head.total >= 1 and head.total <= TRANSPORT_MAX
    and head.size >= 1 and math.ceil(head.total / head.size) <= PARTS_MAX and head.index * head.size < head.total
  if head.is_sound then
    head.bytes = math.min(head.size, head.total - head.index * head.size)
    head.length = HEAD + head.bytes + (head.version == ENCRYPTED and NAME + TAG or 0)
  end
  return head
end

-- Whether a datagram begins here, by its head alone.
local function begins(tvb, at)
  local head = head_at(tvb, at)
  return head and head.is_sound and at + head.length <= tvb:reported_len()
end

local function add_bits(item, range, fields)
  for _, field in ipairs(fields) do item:add(field, range) end
end

-- What follows the 32 bytes of a control message.
local function control_end(m, tree, tvb, at, features)
  local c = cursor(tvb, at, tvb:len())
  local auth = features % (2 * AUTH) >= AUTH
  if features % (2 * FAST_PATH) >= FAST_PATH then
    local range = take(c, FAST_PATH_BYTES)
    if not range then return ends(m, "truncated", tree) end
    local item = tree:add(range, "Fast path")
    local port, flags = item:add(f.port, range(0, 2)), item:add(f.flags, range(2, 1))
    flags:add(f.heard, range(2, 1))
    local group, network = item:add(f.group, range(3, 2)), item:add(f.network, range(5, 3))
    if range(0, 2):uint() == 0 then refuse(m, "short_cut", port) end
    if range(3, 2):uint() == 0 then refuse(m, "short_cut", group) end
    if range(5, 3):uint() == 0 then refuse(m, "short_cut", network) end
    local known = m.type == HELLO or m.type == ACCEPT or m.type == ALIVE
    if not known or is_zero(m.receiver_epoch) then forbid(m, "fast_path", item) end
    if features % (2 * ENCRYPTION) >= ENCRYPTION then forbid(m, "fast_path_encrypted", item) end
  end
  if auth and c.last - c.at < AUTH_BYTES then return ends(m, "truncated", tree) end
  if auth then c.last = c.last - AUTH_BYTES end
  local later = rest(c)
  if later then note(m, "later", tree:add(f.later, later)) end
  if auth then
    local range = tvb(c.at, AUTH_BYTES)
    local item = tree:add(range, "Code")
    item:add(f.auth_key, range(0, 4))
    item:add(f.auth_code, range(4, 16))
  end
end

local function link_hellos(m, pinfo, item, cookie, echo)
  if #m.reasons > 0 then return end
  local key = pinfo.number .. " " .. m.place
  if not pinfo.visited then
    if m.type == HELLO then
      remember(hellos, cookie, recall(hellos, cookie) or { frame = pinfo.number, time = pinfo.rel_ts })
    elseif m.type == ACCEPT then
      hello_answered[key] = recall(hellos, echo)
    end
  end
  local request = hello_answered[key]
  if not request then return end
  item:add(f.answers, request.frame):set_generated()
  local took = math.max(pinfo.rel_ts - request.time, 0)
  local seconds = math.floor(took)
  item:add(f.took, NSTime(seconds, math.floor((took - seconds) * 1e9 + 0.5))):set_generated()
end

-- A control message behind its header (section 3).
local function control(m, tree, tvb, pinfo)
  if tvb:len() < HEADER + CONTROL_MIN then return ends(m, "truncated", tree) end
  local range = tvb(HEADER, CONTROL_MIN)
  local type_item, reason_item = tree:add(f.type, range(0, 1)), tree:add(f.reason, range(1, 1))
  local nodes_item, mtu_item = tree:add(f.nodes, range(2, 2)), tree:add(f.mtu, range(4, 4))
  local interval_item, multiplier_item = tree:add(f.interval, range(8, 4)), tree:add(f.multiplier, range(12, 1))
  local queues_item, features_item = tree:add(f.queues, range(13, 1)), tree:add(f.features, range(14, 2))
  add_bits(features_item, range(14, 2), {
    f.features_fast_path, f.features_auth, f.features_encryption, f.features_in_use, f.features_udp, f.features_tcp, f.features_checksum,
  })
  local cookie_item, echo_item = tree:add(f.cookie, range(16, 8)), tree:add(f.echo, range(24, 8))
  local reason, nodes, mtu = range(1, 1):uint(), range(2, 2):uint(), range(4, 4):uint()
  local interval, multiplier, queues = range(8, 4):uint(), range(12, 1):uint(), range(13, 1):uint()
  local features, cookie, echo = range(14, 2):uint(), range(16, 8):raw(), range(24, 8):raw()
  m.type = range(0, 1):uint()
  m.text = CONTROLS[m.type] or ("type " .. m.type)
  if m.type == REFUSE then m.text = m.text .. " (" .. (REASONS[reason] or reason) .. ")" end
  local is_known = CONTROLS[m.type] ~= nil
  if not is_known then refuse(m, "control_type", type_item) end
  if not REASONS[reason] or (is_known and (m.type == REFUSE) ~= (reason ~= 0)) then refuse(m, "reason", reason_item) end
  if nodes < 2 or nodes > NODES_MAX then refuse(m, "nodes", nodes_item) end
  if mtu < MTU_MIN or mtu > MTU_MAX then refuse(m, "mtu", mtu_item) end
  if queues < 1 or queues > STREAMS_MAX then refuse(m, "queues", queues_item) end
  if interval == 0 then
    refuse(m, "timing", interval_item)
  elseif interval < 10000 or interval > 10000000 then
    note(m, "interval", interval_item)
  end
  if multiplier == 0 then
    refuse(m, "timing", multiplier_item)
  elseif multiplier < 2 or multiplier > 50 then
    note(m, "multiplier", multiplier_item)
  end
  if is_zero(cookie) then refuse(m, "cookie", cookie_item) end
  if is_zero(echo) and (m.type == ACCEPT or m.type == ALIVE or m.type == REFUSE) then refuse(m, "cookie", echo_item) end
  if is_zero(m.receiver_epoch) and is_known and m.type ~= HELLO then refuse(m, "epoch", m.receiver_epoch_item) end
  control_end(m, tree, tvb, HEADER + CONTROL_MIN, features)
  if #m.reasons > 0 then return end
  if m.sender >= nodes then forbid(m, "sender", nodes_item) end
  if not pinfo.visited and features % (2 * ENCRYPTION) >= ENCRYPTION then remember(encrypting, m.sender_epoch, pinfo.number) end
  link_hellos(m, pinfo, tree, cookie, echo)
end

-- A frame behind its header: the virtio header is little-endian (2.1).
local function frame(m, tree, tvb, pinfo, top)
  local range = tvb(HEADER, VIRTIO)
  local item = tree:add(range, "virtio header")
  item:add(f.virtio_flags, range(0, 1))
  local type = item:add(f.virtio_type, range(1, 1))
  local gso = GSO_TYPES[range(1, 1):uint() % 128]
  if gso then type:append_text(" (" .. gso .. (range(1, 1):uint() >= 128 and ", with ECN)" or ")")) end
  item:add_le(f.virtio_header, range(2, 2))
  item:add_le(f.virtio_size, range(4, 2))
  item:add_le(f.virtio_start, range(6, 2))
  item:add_le(f.virtio_offset, range(8, 2))
  item:add_le(f.virtio_buffers, range(10, 2))
  if not m.is_encrypted then
    local since = recall(encrypting, m.sender_epoch)
    if since and since < pinfo.number then forbid(m, "not_encrypted") end
  end
  pass_on(plain_ethernet, tvb(HEADER + VIRTIO):tvb(), pinfo, top)
end

-- A whole message (section 2).
local function whole(tvb, pinfo, tree, top, place)
  local root = tree:add(tvb(), "Message")
  local m = message(fabric_experts, root, tvb)
  m.place, m.text = place, "message"
  if tvb:len() < HEADER then
    ends(m, "truncated")
    return summary(m, m.text)
  end
  local length_given = tvb(28, 4):uint()
  local version_item, kind_item = root:add(f.version, tvb(0, 1)), root:add(f.kind, tvb(1, 1))
  local sender_item, receiver_item = root:add(f.sender, tvb(2, 2)), root:add(f.receiver, tvb(4, 2))
  local stream_item = root:add(f.stream, tvb(6, 2))
  local sender_epoch_item = root:add(f.sender_epoch, tvb(8, 8))
  m.receiver_epoch_item = root:add(f.receiver_epoch, tvb(16, 8))
  local kind = tvb(1, 1):uint()
  root:add(kind == CONTROL and f.cookie_number or f.sequence, tvb(24, 4))
  local length_item = root:add(f.length, tvb(28, 4))
  m.sender, m.receiver = tvb(2, 2):uint(), tvb(4, 2):uint()
  m.sender_epoch, m.receiver_epoch = tvb(8, 8):raw(), tvb(16, 8):raw()
  -- Nobody knows what another version or kind means by the rest.
  if tvb(0, 1):uint() ~= 1 then
    refuse(m, "version", version_item)
    return summary(m, m.text)
  end
  if not KINDS[kind] then
    refuse(m, "kind", kind_item)
    return summary(m, m.text)
  end
  local least, most = VIRTIO + FRAME_MIN, VIRTIO + FRAME_MAX
  if kind == CONTROL then least, most = CONTROL_MIN, CONTROL_MAX end
  local stream = tvb(6, 2):uint()
  if m.sender >= NODES_MAX then refuse(m, "node", sender_item) end
  if m.receiver >= NODES_MAX then refuse(m, "node", receiver_item) end
  if is_zero(m.sender_epoch) then refuse(m, "epoch", sender_epoch_item) end
  if is_zero(m.receiver_epoch) and kind == DATA then refuse(m, "epoch", m.receiver_epoch_item) end
  if kind == DATA and stream >= STREAMS_MAX then refuse(m, "stream", stream_item) end
  if kind == CONTROL and stream ~= 0 then forbid(m, "stream", stream_item) end
  if length_given < least or length_given > most then refuse(m, "length", length_item) end
  if length_given ~= tvb:reported_len() - HEADER then refuse(m, "length_mismatch", length_item) end
  if m.sender == m.receiver then forbid(m, "own_number", receiver_item) end
  if kind == CONTROL then
    control(m, root, tvb, pinfo)
  else
    m.text = string.format("DATA, stream %d, sequence %d", stream, tvb(24, 4):uint())
    if #m.reasons == 0 and tvb:len() >= HEADER + VIRTIO + FRAME_MIN then frame(m, root, tvb, pinfo, top) end
  end
  local text = summary(m, m.text)
  root:append_text(string.format(", node %d to %d: %s", m.sender, m.receiver, text))
  return string.format("node %d to %d: %s", m.sender, m.receiver, text)
end

-- Puts a message together from its parts. Its bytes, once all are there.
local function put_together(m, pinfo, head, bytes, place, item)
  local at = pinfo.number .. " " .. place
  if pinfo.visited then return complete[at] end
  local name = table.concat({ tostring(pinfo.src), pinfo.src_port, tostring(pinfo.dst), pinfo.dst_port, head.key }, " ")
  local known = recall(parts, name)
  if not known then
    known = { total = head.total, size = head.size, missing = math.ceil(head.total / head.size) }
    remember(parts, name, known)
  end
  if known.total ~= head.total or known.size ~= head.size then
    refuse(m, "datagram_differs", item)
  elseif known.missing > 0 and not known[head.index] then
    known[head.index] = bytes
    known.missing = known.missing - 1
    if known.missing == 0 then
      local all = { known[0] }
      for index = 1, math.ceil(head.total / head.size) - 1 do all[#all + 1] = known[index] end
      complete[at] = table.concat(all)
      for index = 0, #all - 1 do known[index] = true end
    end
  end
  return complete[at]
end

-- One datagram of `length` bytes from `at`. What stands in the info column.
local function datagram(tvb, at, length, pinfo, tree, top, number)
  local item = tree:add(tvb(at, length), "Datagram")
  local m = message(fabric_experts, item, tvb)
  m.cut = m.cut and at + length == tvb:len()
  if length < HEAD then
    ends(m, "datagram_short")
    return summary(m, "datagram")
  end
  item:add(f.instance, tvb(at, 4))
  item:add(f.frame, tvb(at + 4, 4))
  local version_item, total_item = item:add(f.form, tvb(at + 8, 1)), item:add(f.total, tvb(at + 9, 3))
  local size_item, index_item = item:add(f.size, tvb(at + 12, 2)), item:add(f.index, tvb(at + 14, 2))
  local head = head_at(tvb, at)
  if head.version ~= PLAIN and head.version ~= ENCRYPTED then
    refuse(m, "datagram_version", version_item)
    return summary(m, "datagram")
  end
  local sound_total = head.total >= 1 and head.total <= TRANSPORT_MAX
  local sound_size = head.size >= 1 and math.ceil(head.total / head.size) <= PARTS_MAX
  if not sound_total then refuse(m, "datagram_total", total_item) end
  if not sound_size then refuse(m, "datagram_size", size_item) end
  if sound_total and sound_size and not head.is_sound then refuse(m, "datagram_index", index_item) end
  local overhead = head.version == ENCRYPTED and HEAD + NAME + TAG or HEAD
  if length <= overhead then
    ends(m, "datagram_short")
  elseif head.is_sound and length ~= head.length then
    ends(m, "datagram_bytes")
  end
  if head.version == ENCRYPTED then
    if length >= HEAD + NAME then
      item:add(f.key, tvb(at + HEAD, 4))
      item:add(f.number, tvb(at + HEAD + 4, 8))
    end
    if length > overhead and not m.cut then
      note(m, "encrypted", item:add(f.secret, tvb(at + HEAD + NAME, length - overhead)))
      item:add(f.tag, tvb(at + length - TAG, TAG))
    end
    return summary(m, "encrypted")
  end
  if length > HEAD then item:add(f.part, tvb(at + HEAD, length - HEAD)) end
  if #m.reasons > 0 or m.cut then return summary(m, "datagram") end
  if head.bytes == head.total then return whole(tvb(at + HEAD, head.total):tvb(), pinfo, tree, top, number) end
  local bytes = put_together(m, pinfo, head, tvb(at + HEAD, head.bytes):raw(), number, item)
  if bytes then return whole(ByteArray.new(bytes, true):tvb("Fabric message"), pinfo, tree, top, number) end
  note(m, "incomplete")
  return summary(m, string.format("part %d of %d bytes", head.index, head.total))
end

function fabric.dissector(tvb, pinfo, tree)
  pinfo.cols.protocol = "fabric"
  pinfo.cols.info = "fabric"
  local root = tree:add(fabric, tvb())
  local at, texts = 0, {}
  repeat
    local length, head = tvb:len() - at, head_at(tvb, at)
    -- What a kernel joined, or has not cut yet, is captured as one.
    if head and head.is_sound and head.length < length and begins(tvb, at + head.length) then length = head.length end
    texts[#texts + 1] = datagram(tvb, at, length, pinfo, root, tree, #texts)
    at = at + length
  until at >= tvb:len()
  if #texts > 1 then
    note({ experts = fabric_experts }, "joined", root)
    pinfo.cols.info = #texts .. " datagrams, the last: " .. texts[#texts]
    return tvb:len()
  end
  -- A frame has its own words.
  if not texts[1]:find("DATA", 1, true) or texts[1]:find("refused", 1, true) then pinfo.cols.info = texts[1] end
  return tvb:len()
end

-- Whether bytes on some UDP port are a fabric's: the head fits the length, and a message that is here begins as one.
local function is_fabric(tvb)
  local head = head_at(tvb, 0)
  if not head or not head.is_sound then return false end
  local length = tvb:reported_len()
  if head.length ~= length and not begins(tvb, head.length) then return false end
  if head.version == ENCRYPTED or head.index > 0 then return true end
  if tvb:len() < HEAD + HEADER or head.total < HEADER then return false end
  return tvb(HEAD, 1):uint() == 1 and KINDS[tvb(HEAD + 1, 1):uint()] ~= nil and tvb(HEAD + 28, 4):uint() == head.total - HEADER
end

fabric:register_heuristic("udp", function(tvb, pinfo, tree)
  if not is_fabric(tvb) then return false end
  pinfo.conversation = fabric
  fabric.dissector(tvb, pinfo, tree)
  return true
end)

local udp_ports = DissectorTable.get("udp.port")
udp_ports:add_for_decode_as(fabric)
fabric.prefs.ports = Pref.range("UDP ports", "",
  "UDP ports of fabrics. On other ports they are found by what they hold, unless another protocol has the port.", 65535)

local ports = ""
function fabric.prefs_changed()
  if ports ~= "" then udp_ports:remove(ports, fabric) end
  ports = tostring(fabric.prefs.ports)
  if ports ~= "" then udp_ports:add(ports, fabric) end
end
