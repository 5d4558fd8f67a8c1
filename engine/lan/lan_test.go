package lan

import (
	"errors"
	"net"
	"net/netip"
	"testing"
)

func none() ([]net.Addr, error) { return nil, nil }

// TestOf is the table of spellings.
func TestOf(t *testing.T) {
	tries := 0
	for want, list := range map[Place][]string{
		Public: {"1.1.1.1", "8.8.8.8", "93.184.216.34", "100.63.255.255", "100.128.0.0", "169.253.255.255",
			"169.255.0.1", "168.63.129.17", "172.15.0.1", "172.32.0.1",
			"192.167.255.255", "2606:4700:4700::1111", "2a00:1450:4001::1", "::ffff:8.8.8.8"},
		Inside: {"127.0.0.1", "127.255.255.254", "::1", "::ffff:127.0.0.1", "::ffff:7f00:1", "10.0.0.1",
			"10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.1.1",
			"::ffff:192.168.1.1", "100.64.0.1", "100.127.255.254", "fc00::1", "fd12:3456::1", "fdff::1"},
		Never: {
			"169.254.169.254", "169.254.0.1", "169.254.170.2", "::ffff:169.254.169.254", "::ffff:a9fe:a9fe", // metadata, mapped
			"64:ff9b::169.254.169.254", "64:ff9b::a9fe:a9fe", "64:ff9b:1::a9fe:a9fe", "64:ff9b::7f00:1", "64:ff9b::8.8.8.8", // NAT64
			"2002:a9fe:a9fe::", "2002:7f00:1::", "2002:a9fe:a9fe::1", "2002:808:808::", // 6to4
			"2001:0:a9fe:a9fe::", "2001:0:7f00:1::", // Teredo
			"::169.254.169.254", "::127.0.0.1", "::a9fe:a9fe", "::2", // compatible
			"fe80::1", "fe80::a9fe:a9fe", "febf::1", "fe80::1%lo", "fe80::1%eth0", "fc00::1%eth0", "::1%lo", "fec0::1", // link, zone, site
			// clouds
			"fd00:ec2::254", "fd00:ec2::23", "fd00:ec2::253", "fd20:ce::254", "100.100.100.200",
			"::ffff:100.100.100.200", "168.63.129.16", "192.0.0.192",
			"0.0.0.0", "0.1.2.3", "::", "::ffff:0.0.0.0", "224.0.0.1", "239.1.1.1", "255.255.255.255", "240.0.0.1", "ff02::1", "ff0e::1",
			"192.0.2.1", "198.51.100.1", "203.0.113.1", "198.18.0.1", "198.19.255.255", "192.88.99.1", "100::1",
			"2001:db8::1", "3fff::1", "5f00::1",
		},
	} {
		for _, text := range list {
			tries++
			if got := Of(netip.MustParseAddr(text), none); got != want {
				t.Errorf("%s leads to %d, want %d", text, got, want)
			}
		}
	}

	if got := Of(netip.Addr{}, none); got != Never {
		t.Errorf("no address leads to %d", got)
	}
	t.Logf("%d spellings", tries)
}

func TestPlainly(t *testing.T) {
	for host, want := range map[string]bool{"localhost": true, "192.168.1.5": true, "::1": true,
		"169.254.169.254": true, "8.8.8.8": false, "nas.home": false, "a.org": false, "": false} {
		if Plainly(host) != want {
			t.Errorf("%q: %v", host, !want)
		}
	}
}

// The machine's own public address leads past its firewall, and so may every address while
// the machine's own are not known. What never is reached is not, whoever has it.
func TestOwnAddressesAreInside(t *testing.T) {
	mine := func() ([]net.Addr, error) {
		var all []net.Addr
		for _, text := range []string{"127.0.0.1/8", "8.8.4.4/24", "2600:1f18::7/64", "169.254.1.2/16", "fe80::2/64"} {
			ip, network, err := net.ParseCIDR(text)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, &net.IPNet{IP: ip, Mask: network.Mask})
		}

		return all, nil
	}
	unknown := func() ([]net.Addr, error) { return nil, errors.New("no netlink") }
	for _, tt := range []struct {
		address string
		mine    Interfaces
		want    Place
	}{
		{"8.8.4.4", mine, Inside}, {"::ffff:8.8.4.4", mine, Inside}, {"2600:1f18::7", mine, Inside}, {"8.8.4.5", mine, Public},
		{"2600:1f18::8", mine, Public}, {"8.8.8.8", unknown, Inside}, {"169.254.1.2", mine, Never},
		{"fe80::2", mine, Never}, {"169.254.169.254", unknown, Never},
	} {
		if got := Of(netip.MustParseAddr(tt.address), tt.mine); got != tt.want {
			t.Errorf("%s leads to %d, want %d", tt.address, got, tt.want)
		}
	}
}

// Only localhost and loopback addresses in any spelling are this machine alone.
func TestLoopback(t *testing.T) {
	for host, want := range map[string]bool{"localhost": true, "127.1.2.3": true, "::1": true, "::ffff:127.0.0.1": true,
		"my.localhost": false, "0.0.0.0": false, "": false, "127.0.0.1.example": false, "10.0.0.1": false} {
		if Loopback(host) != want {
			t.Errorf("Loopback(%q) is %t", host, !want)
		}
	}
}
