/// A user of the guest, as its /etc/passwd and /etc/group describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    pub uid: u32,
    pub gid: u32,
    /// Supplementary groups.
    pub groups: Vec<u32>,
    pub name: String,
    pub home: String,
    pub shell: String,
}

impl User {
    /// Finds `wanted` (`USER` or `USER:GROUP`, names or numbers) in the texts of passwd and group.
    ///
    /// A number needs no entry. `None` for a name that is not there, and for an id outside the
    /// guest's range, `ids`: the files are the guest's, and may hold any number.
    pub fn find(wanted: &str, passwd: &str, group: &str, ids: u32) -> Option<Self> {
        let (user, primary) = match wanted.split_once(':') {
            Some((user, group)) => (user, Some(group)),
            None => (wanted, None),
        };
        let mut found = entry(user, passwd).or_else(|| unknown(user))?;
        let lines = || group.lines().map(|line| line.split(':').collect::<Vec<_>>());
        if let Some(primary) = primary {
            let named = lines().find(|fields| fields[0] == primary);
            let number = named.and_then(|fields| fields.get(2)?.parse().ok());
            found.gid = number.or_else(|| primary.parse().ok())?;
        }
        found.groups = lines()
            .filter(|fields| {
                fields.get(3).is_some_and(|members| members.split(',').any(|m| m == found.name))
            })
            .filter_map(|fields| fields.get(2)?.parse().ok())
            .chain([found.gid])
            .filter(|&gid| gid < ids)
            .collect();
        (found.uid < ids && found.gid < ids).then_some(found)
    }
}

fn entry(user: &str, passwd: &str) -> Option<User> {
    let number = user.parse::<u32>().ok();
    passwd.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, uid, gid, _, home, shell, ..] = fields[..] else { return None };
        let uid: u32 = uid.parse().ok()?;
        (name == user || number == Some(uid)).then(|| User {
            uid,
            gid: gid.parse().unwrap_or(uid),
            groups: Vec::new(),
            name: name.to_owned(),
            home: home.to_owned(),
            shell: if shell.is_empty() { "/bin/sh".to_owned() } else { shell.to_owned() },
        })
    })
}

/// A user without an entry: only a number can name it.
fn unknown(user: &str) -> Option<User> {
    let uid = user.parse().ok().or((user == "root").then_some(0))?;
    let (name, home) = if uid == 0 { ("root", "/root") } else { (user, "/") };
    Some(User {
        uid,
        gid: uid,
        groups: Vec::new(),
        name: name.to_owned(),
        home: home.to_owned(),
        shell: "/bin/sh".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash\nwww:x:33:33::/var/www:\nbroken\n";
    const GROUP: &str = "root:x:0:\nadm:x:4:www,root\nstaff:x:50:www\nwww:x:33:\n";

    #[test]
    fn finds_by_name_and_number() {
        let find = |wanted| User::find(wanted, PASSWD, GROUP, 1 << 16).unwrap();
        let www = find("www");
        assert_eq!((www.uid, www.gid, www.groups.clone()), (33, 33, vec![4, 50, 33]));
        assert_eq!((www.home.as_str(), www.shell.as_str()), ("/var/www", "/bin/sh"));
        assert_eq!(find("33"), www);
        assert_eq!(find("www:staff").gid, 50);
        assert_eq!(find("www:7").gid, 7);
    }

    #[test]
    fn a_number_needs_no_entry_and_a_name_does() {
        let find = |wanted, passwd, group| User::find(wanted, passwd, group, 1 << 16);
        assert_eq!(find("1234", PASSWD, "").unwrap().home, "/");
        assert_eq!(find("root", "", "").unwrap().home, "/root");
        assert_eq!(find("nobody", PASSWD, GROUP), None);
        assert_eq!(find("www:nogroup", PASSWD, GROUP), None);
    }

    #[test]
    fn nobody_is_beyond_the_guests_ids() {
        let hostile = "root:x:4294967295:0::/:/bin/sh\njoe:x:7:4294967295::/:\njim:x:7:7::/:\n";
        let find = |wanted| User::find(wanted, hostile, "huge:x:4294967295:jim\n", 1 << 16);
        for wanted in ["root", "joe", "65536", "4294967295", "7:65536", "7:huge"] {
            assert_eq!(find(wanted), None, "{wanted}");
        }
        assert_eq!(find("jim").unwrap().groups, [7]);
        assert_eq!(find("65535:65535").unwrap().gid, 65535);
    }
}
